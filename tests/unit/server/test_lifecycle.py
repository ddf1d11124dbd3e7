"""A server on a real socket: loading, serving, draining."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from puna.config import ServerSettings
from puna.errors import StartupError, Unavailable
from puna.server.lifecycle import Lifecycle, LoadingReport
from puna.server.sockets import listen
from puna.types import Chunk
from tests.fakes import FACTS, FakeEngine, FakeStream, Item, say


@dataclass
class LivingEngine(FakeEngine):
    """A fake engine that loads for as long as it is told to."""

    load: asyncio.Event = field(default_factory=asyncio.Event)
    bad: str = ""
    stopped: bool = False

    async def start(self, on_loading: Callable[[float], None] | None = None) -> None:
        self.facts, self.state = None, "loading"
        if on_loading is not None:
            on_loading(0.5)
        await self.load.wait()
        if self.bad:
            self.state, self.failure = "failed", self.bad
            raise StartupError(self.bad)
        self.facts, self.state = FACTS, "ready"

    async def drain(self, timeout: float) -> int:
        for _ in range(int(timeout / 0.005)):
            if not self.in_flight:
                break
            await asyncio.sleep(0.005)
        return self.in_flight

    async def stop(self) -> None:
        self.stopped = True
        for stream in self.streams:
            if isinstance(stream, Endable):
                stream.end.set()

    def generate(self, generation: Any, *, every_token: bool = False) -> FakeStream:
        stream = Endable(generation, self.script(len(self.streams)))
        self.streams.append(stream)
        return stream


class Endable(FakeStream):
    """Waits at its end until the engine stops, then fails; a script of the usual kind ends before that."""

    def __init__(self, generation: Any, script: Iterable[Item]) -> None:
        super().__init__(generation, script)
        self.end = asyncio.Event()
        self.last: Chunk | None = None

    async def __anext__(self) -> Chunk:
        if self.last is not None and self.last.stop_type != "none":
            return await super().__anext__()
        try:
            self.last = await super().__anext__()
        except StopAsyncIteration:
            self.finished = False
            await self.end.wait()
            raise Unavailable("the server is shutting down") from None
        return self.last


@asynccontextmanager
async def serving(
    engine: LivingEngine, **settings: Any
) -> AsyncIterator[tuple[Lifecycle, asyncio.Task[None], httpx.AsyncClient]]:
    lifecycle = Lifecycle(engine, ServerSettings(**settings), listen("127.0.0.1", 0))
    task = asyncio.create_task(lifecycle.run())
    async with httpx.AsyncClient(base_url=lifecycle.url, trust_env=False, timeout=5) as http:
        try:
            yield lifecycle, task, http
        finally:
            if not task.done():
                engine.load.set()
                lifecycle.stop()
                await asyncio.wait_for(task, 10)


async def ready(http: httpx.AsyncClient) -> None:
    for _ in range(400):
        if (await http.get("/health")).status_code == 200:
            return
        await asyncio.sleep(0.005)
    raise AssertionError("the server does not become ready")


async def test_the_socket_answers_while_the_model_loads(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="puna")
    engine = LivingEngine()
    async with serving(engine) as (lifecycle, _, http):
        reply = await http.get("/health")
        assert reply.status_code == 503 and reply.json()["error"]["message"] == "Loading model"
        assert f"ready at {lifecycle.url}" not in caplog.text
        engine.load.set()
        await ready(http)
        for _ in range(400):  # the chat template is read first, on a thread
            if f"ready at {lifecycle.url}" in caplog.text:
                break
            await asyncio.sleep(0.005)
        assert f"ready at {lifecycle.url}" in caplog.text
        reply = await http.post("/completion", json={"prompt": "x"})
        assert reply.json()["content"] == "Hello world" and "server" not in reply.headers
    assert engine.stopped


async def test_a_model_that_cannot_be_loaded_ends_the_server() -> None:
    engine = LivingEngine(bad="not a GGUF file")
    async with serving(engine) as (_, task, http):
        await http.get("/health")
        engine.load.set()
        with pytest.raises(StartupError, match="not a GGUF file"):
            await asyncio.wait_for(task, 10)
        assert engine.stopped


async def test_a_bad_template_from_the_command_line_ends_the_server() -> None:
    engine = LivingEngine()
    async with serving(engine, chat_template="{% if %}") as (_, task, _http):
        engine.load.set()
        with pytest.raises(StartupError, match="does not compile"):
            await asyncio.wait_for(task, 10)


async def read(reply: httpx.Response) -> str:
    return "".join([text async for text in reply.aiter_text()])


async def test_running_answers_may_finish_but_no_new_ones_begin() -> None:
    engine = LivingEngine(script=lambda _: say("a", "b", pause=0.15))
    async with serving(engine, drain_timeout=5.0) as (lifecycle, task, http):
        engine.load.set()
        await ready(http)
        async with http.stream(
            "POST", "/v1/chat/completions", json={"messages": [{"role": "user", "content": "x"}], "stream": True}
        ) as reply:
            lifecycle.stop()
            await asyncio.sleep(0.02)
            refused = await http.post("/completion", json={"prompt": "x"})
            assert refused.status_code == 503 and "shutting down" in refused.json()["error"]["message"]
            assert (await http.get("/health")).status_code == 503
            assert (await read(reply)).endswith("data: [DONE]\n\n")
        await asyncio.wait_for(task, 10)
    assert len(engine.streams) == 1


async def test_answers_that_do_not_finish_in_time_end_with_an_error() -> None:
    engine = LivingEngine(script=lambda _: [Chunk(text="a", tokens=(97,))])
    async with serving(engine, drain_timeout=0.05) as (lifecycle, task, http):
        engine.load.set()
        await ready(http)
        async with http.stream("POST", "/completion", json={"prompt": "x", "stream": True}) as reply:
            lifecycle.stop()
            text = await read(reply)
        await asyncio.wait_for(task, 10)
    last = json.loads(text.strip().rpartition("\n")[2].removeprefix("data: "))
    assert last["error"]["type"] == "unavailable_error" and last["error"]["code"] == 503


async def test_a_client_that_leaves_over_a_socket_ends_its_generation() -> None:
    engine = LivingEngine(script=lambda _: [Chunk(text="a", tokens=(97,))])
    async with serving(engine) as (_, _, http):
        engine.load.set()
        await ready(http)
        async with http.stream("POST", "/completion", json={"prompt": "x", "stream": True}) as reply:
            await anext(reply.aiter_text())
        with pytest.raises(httpx.ReadTimeout):
            await http.post("/completion", json={"prompt": "x"}, timeout=0.05)
        for _ in range(400):
            if len(engine.streams) == 2 and engine.in_flight == 0:
                break
            await asyncio.sleep(0.005)
        assert [stream.closed for stream in engine.streams] == [True, True]


def test_a_taken_port_is_said_in_words() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartupError, match=f"port {port} on 127.0.0.1 is in use"):
            listen("127.0.0.1", port)
    with pytest.raises(StartupError, match="cannot listen"):
        listen("192.0.2.1", 0)


def test_slow_loading_is_reported_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="puna")
    now = 0.0
    report = LoadingReport(lambda: now)
    for now in (0.0, 1.0, 2.5, 3.0, 5.0, 8.0):
        report(min(1.0, now / 8))
    assert [record.getMessage() for record in caplog.records] == ["loading: 31 %", "loading: 62 %"]
