"""Streams as they go out: headers at once, one write a step, signs of life, and an end when the client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from fastapi import FastAPI

from puna.config import ServerSettings
from puna.server.app import create_app
from puna.types import Chunk
from tests.fakes import FakeEngine, Item, say
from tests.web import exchange

TURN = {"messages": [{"role": "user", "content": "x"}]}
ROUTES: list[tuple[str, dict[str, Any]]] = [
    ("/completion", {"prompt": "x"}),
    ("/v1/completions", {"prompt": "x"}),
    ("/v1/chat/completions", TURN),
]
FOREVER = 3600.0


def app(engine: FakeEngine, **settings: Any) -> FastAPI:
    return create_app(engine, ServerSettings(**settings))


def silent(_number: int) -> Iterable[Item]:
    return [FOREVER]


@pytest.mark.parametrize("path, body", ROUTES)
async def test_headers_go_out_before_the_first_token(path: str, body: dict[str, Any]) -> None:
    async with exchange(app(FakeEngine(script=silent)), path, {**body, "stream": True}) as running:
        await running.until(lambda: running.status == 200)
        headers = dict(running.sent[0]["headers"])
        assert headers[b"content-type"].startswith(b"text/event-stream")
        assert headers[b"cache-control"] == b"no-cache" and b"content-length" not in headers
        assert running.writes == []


@pytest.mark.parametrize("path, body", ROUTES)
async def test_what_a_step_brings_is_one_write(path: str, body: dict[str, Any]) -> None:
    steps = [asyncio.Event(), asyncio.Event()]

    def script(_number: int) -> Iterable[Item]:
        first, *rest = say("a", "b")
        return [steps[0], first, steps[1], *rest]

    async with exchange(app(FakeEngine(script=script)), path, {**body, "stream": True, "n": 3}) as running:
        await running.until(lambda: running.status == 200)
        for step in steps:
            written = len(running.writes)
            step.set()
            await running.until(lambda written=written: len(running.writes) > written)
        await running.until(lambda: running.complete)
        writes = running.writes
    # Two steps, the end of which comes with the second one's text, and for the OpenAI routes the closing line.
    assert len(writes) <= 4
    for write in writes:
        assert write.startswith(b"data: ") and write.endswith(b"\n\n")
    assert writes[0].count(b"data: ") == (6 if "chat" in path else 3)


@pytest.mark.parametrize("path, body", ROUTES)
async def test_a_silent_stream_shows_signs_of_life(path: str, body: dict[str, Any]) -> None:
    engine = FakeEngine(script=lambda _: [0.2, *say("late")])
    settings = {"sse_ping_after": 0.02, "sse_ping_interval": 0.02}
    async with exchange(app(engine, **settings), path, {**body, "stream": True}) as running:
        await running.until(lambda: running.complete)
        first_data = next(i for i, write in enumerate(running.writes) if write.startswith(b"data: "))
        assert first_data >= 2
        assert all(write == b": ping\n\n" for write in running.writes[:first_data])


@pytest.mark.parametrize(
    "settings, fields",
    [
        ({"sse_ping_interval": -1.0, "sse_ping_after": 0.01}, {}),
        ({"sse_ping_interval": 0.01, "sse_ping_after": 0.01}, {"sse_ping_interval": -1}),
        ({"sse_ping_interval": 0.01, "sse_ping_after": 5.0}, {}),
    ],
)
async def test_signs_of_life_can_be_turned_off_and_wait_for_their_time(settings: Any, fields: Any) -> None:
    engine = FakeEngine(script=lambda _: [0.1, *say("late")])
    async with exchange(app(engine, **settings), "/completion", {"prompt": "x", "stream": True, **fields}) as running:
        await running.until(lambda: running.complete)
        assert not any(write.startswith(b":") for write in running.writes)


async def test_whole_replies_never_have_them() -> None:
    engine = FakeEngine(script=lambda _: [0.1, *say("late")])
    settings = {"sse_ping_after": 0.01, "sse_ping_interval": 0.01}
    async with exchange(app(engine, **settings), "/completion", {"prompt": "x"}) as running:
        await running.until(lambda: running.complete)
        assert len(running.writes) == 1 and running.writes[0].startswith(b"{")


@pytest.mark.parametrize("path, body", ROUTES)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("begun", [False, True], ids=["silent", "begun"])
async def test_a_client_that_leaves_ends_all_its_generations(path: str, body: dict[str, Any], stream: bool, begun: bool) -> None:
    script: list[Item] = [Chunk(text="a", tokens=(97,)), FOREVER] if begun else [FOREVER]
    engine = FakeEngine(script=lambda _: script)
    async with exchange(app(engine), path, {**body, "stream": stream, "n": 2}) as running:
        await running.until(lambda: len(engine.streams) == 2, 1) if stream else await asyncio.sleep(0.02)
        if stream and begun:
            await running.until(lambda: running.writes)
        assert engine.in_flight == 2
        running.leave()
        await asyncio.wait_for(running.task, 1)
        assert engine.in_flight == 0 and all(s.closed for s in engine.streams)


async def test_one_client_that_leaves_does_not_disturb_another() -> None:
    engine = FakeEngine(script=lambda number: say("a", "b", pause=0.03) if number == 0 else [FOREVER])
    served = app(engine)
    async with exchange(served, "/completion", {"prompt": "x", "stream": True}) as first:
        await first.until(lambda: first.status)
        async with exchange(served, "/completion", {"prompt": "y", "stream": True}) as second:
            await second.until(lambda: second.status)
            second.leave()
            await asyncio.wait_for(second.task, 1)
        await first.until(lambda: first.complete)
    assert b"".join(first.writes).count(b'"content":"') == 3
    assert engine.streams[1].closed


async def test_an_unforeseen_error_ends_the_stream_without_its_details(caplog: pytest.LogCaptureFixture) -> None:
    engine = FakeEngine(script=lambda _: [Chunk(text="a", tokens=(97,)), 0.01, KeyError("secret detail")])
    async with exchange(app(engine), "/completion", {"prompt": "x", "stream": True}) as running:
        await running.until(lambda: running.complete)
    assert b'"type":"server_error"' in running.writes[-1] and b"secret" not in b"".join(running.writes)
    assert "secret detail" in caplog.text
