"""Several streams merged into one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from puna.errors import InvalidRequest, ServerFault
from puna.service.ports import Nobody
from puna.service.running import Event, Running
from puna.types import Chunk, Generation
from tests.fakes import FakeStream, Item, say

GENERATION = Generation(prompt=(1,))


def running(*scripts: Iterable[Item]) -> tuple[Running, list[FakeStream]]:
    streams = [FakeStream(GENERATION, script) for script in scripts]
    return Running([GENERATION] * len(streams), streams, Nobody()), streams


async def drain(merged: Running) -> list[tuple[Event, ...]]:
    return [batch async for batch in merged]


async def test_each_stream_keeps_its_order() -> None:
    merged, _ = running(say("a", "b", pause=0.001), say("c", "d"))
    events = [event for batch in await drain(merged) for event in batch]
    for index, texts in enumerate((["a", "b", ""], ["c", "d", ""])):
        assert [chunk.text for at, chunk in events if at == index] == texts


async def test_what_comes_at_once_is_one_batch() -> None:
    merged, _ = running(say("a"), say("b"))
    assert len(await drain(merged)) == 1


async def test_what_came_before_an_error_is_read_first() -> None:
    merged, streams = running([Chunk(text="a"), InvalidRequest("bad")], [60.0])
    assert await merged.__anext__() == ((0, Chunk(text="a")),)
    with pytest.raises(InvalidRequest, match="bad"):
        await merged.__anext__()
    assert all(stream.closed for stream in streams)


async def test_an_end_without_a_reason_is_a_fault() -> None:
    merged, _ = running([Chunk(text="a")])
    with pytest.raises(ServerFault):
        await drain(merged)


async def test_closing_stops_all_and_may_be_repeated() -> None:
    merged, streams = running([60.0], [60.0])
    await asyncio.sleep(0)
    await merged.aclose()
    await merged.aclose()
    assert all(stream.closed for stream in streams)
