"""Streams that outlive their connection."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import httpx
from fastapi import FastAPI

from puna.config import ServerSettings
from puna.server.app import create_app
from puna.server.replay import Recording, Recordings
from tests.fakes import FakeEngine, Item, say
from tests.web import asyncio_timeout, client, exchange

NAMED = [(b"x-conversation-id", b"talk")]
BODY = {"prompt": "x", "stream": True}


def app(engine: FakeEngine, **settings: Any) -> FastAPI:
    return create_app(engine, ServerSettings(**settings))


async def until(condition: Any) -> None:
    async with asyncio_timeout(5):
        while not condition():  # noqa: ASYNC110 - there is no event for what a fake does
            await asyncio.sleep(0.005)


def slow(*texts: str) -> list[Item]:
    return say(*texts, pause=0.03)


def test_a_recording_keeps_the_end() -> None:
    async def run() -> None:
        one = Recording(limit=10)
        for data in (b"abcd", b"", b"efgh", b"ijkl"):
            one.add(data)
        assert (one.begin, one.end) == (4, 12)
        assert [one.since(offset) for offset in (4, 6, 8, 11, 12)] == [b"efghijkl", b"ghijkl", b"ijkl", b"l", b""]
        waiting = asyncio.create_task(one.more(12))
        await asyncio.sleep(0)
        one.add(b"m")
        assert await waiting and await one.more(12)
        one.finish()
        assert not await one.more(13)

    asyncio.run(run())


def test_the_memory_of_streams_is_bounded() -> None:
    async def run() -> None:
        kept = Recordings(max_streams=3, max_bytes=100)
        made = [Recording() for _ in range(5)]
        for number, one in enumerate(made):
            kept.put(("", str(number)), one)
        assert len(kept) == 3 and made[0].stopped.is_set() and made[1].stopped.is_set()
        made[2].add(b"x" * 90)
        made[2].finish()
        kept.ended(("", "2"), made[2])
        made[3].add(b"x" * 90)
        made[3].finish()
        kept.ended(("", "3"), made[3])
        assert kept.get(("", "2")) is None and kept.get(("", "3")) is made[3]
        brief = Recordings(kept=0.01)
        brief.put(("", "a"), made[4])
        made[4].finish()
        brief.ended(("", "a"), made[4])
        await asyncio.sleep(0.03)
        assert len(brief) == 0

    asyncio.run(run())


async def test_an_answer_goes_on_without_its_client_and_is_found_again() -> None:
    engine = FakeEngine(script=lambda _: slow("one ", "two ", "three"))
    served = app(engine)
    async with exchange(served, "/completion", BODY, headers=NAMED) as running:
        await running.until(lambda: running.writes)
        running.leave()
        await running.task
    assert not engine.streams[0].closed
    async with exchange(served, "/v1/stream/talk", {}, method="GET") as again:
        await again.until(lambda: again.complete, timeout=5)
        text = b"".join(again.writes).decode()
    assert all(word in text for word in ("one ", "two ", "three")) and text.count("data: ") == 4
    async with exchange(served, "/v1/stream/talk", {}, method="GET") as whole:
        await whole.until(lambda: whole.complete)
        assert b"".join(whole.writes).decode() == text
    await until(lambda: engine.streams[0].closed)


async def test_without_the_header_an_answer_ends_with_its_client() -> None:
    engine = FakeEngine(script=lambda _: [*slow("one "), 3600.0])
    async with exchange(app(engine), "/completion", BODY) as running:
        await running.until(lambda: running.writes)
        running.leave()
        await running.task
    assert engine.streams[0].closed


async def test_offsets() -> None:
    transport_app = app(FakeEngine())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(transport_app), base_url="http://localhost") as web:
        first = await web.post("/completion", json=BODY, headers={"x-conversation-id": "a b/c"})
        for offset in (0, 5, len(first.content)):
            again = await web.get("/v1/stream", params={"conv_id": "a b/c", "from": offset})
            assert again.content == first.content[offset:]
            assert again.headers["content-type"].startswith("text/event-stream")
        for wrong in ("-1", "x", str(len(first.content) + 1), "9" * 30):
            reply = await web.get("/v1/stream", params={"conv_id": "a b/c", "from": wrong})
            assert reply.status_code == 400 and reply.json()["error"]["param"] == "from"
        assert (await web.get("/v1/stream")).json()["error"]["param"] == "conv_id"
        assert (await web.get("/v1/stream", params={"conv_id": "other"})).status_code == 404
        assert (await web.post("/v1/stream/x")).status_code == 400
        assert (await web.get("/v1/streams")).status_code == 404
        for _ in range(2):
            assert (await web.delete("/v1/stream", params={"conv_id": "a b/c"})).json() == {"success": True}
        assert (await web.get("/v1/stream", params={"conv_id": "a b/c"})).status_code == 404
        long = await web.post("/completion", json=BODY, headers={"x-conversation-id": "x" * 300})
        assert long.status_code == 400


async def test_delete_and_a_newer_stream_stop_what_runs() -> None:
    def endless(_number: int) -> Iterable[Item]:
        return [*slow("a")[:2], 3600.0]

    engine = FakeEngine(script=endless)
    served = app(engine)
    async with exchange(served, "/completion", BODY, headers=NAMED) as running:
        await running.until(lambda: running.writes)
        async with exchange(served, "/completion", BODY, headers=NAMED) as newer:
            await newer.until(lambda: newer.writes)
            await until(lambda: engine.streams[0].closed)
            assert not engine.streams[1].closed
            async with exchange(served, "/v1/stream/talk", {}, method="DELETE") as stop:
                await stop.until(lambda: stop.complete)
                assert stop.status == 200
            await until(lambda: engine.streams[1].closed)


async def test_what_is_no_stream_is_left_alone() -> None:
    engine = FakeEngine()
    async with client(engine) as web:
        headers = {"x-conversation-id": "talk"}
        whole = await web.post("/completion", json={"prompt": "x"}, headers=headers)
        assert whole.json()["content"] == "Hello world"
        wrong = await web.post("/completion", json={"prompt": {}, "stream": True}, headers=headers)
        assert wrong.status_code == 400
        assert (await web.get("/v1/stream/talk")).status_code == 404


async def test_keys_have_names_of_their_own() -> None:
    async with client(FakeEngine(), api_keys=("a", "b")) as web:
        await web.post("/completion", json=BODY, headers={"x-conversation-id": "talk", "authorization": "Bearer a"})
        assert (await web.get("/v1/stream/talk", headers={"x-api-key": "a"})).status_code == 200
        assert (await web.get("/v1/stream/talk", headers={"x-api-key": "b"})).status_code == 404
        assert (await web.get("/v1/stream/talk")).status_code == 401
