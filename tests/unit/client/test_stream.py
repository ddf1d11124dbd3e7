"""The iterator's face: waiting, ending, closing, dropping."""

from __future__ import annotations

import asyncio
import gc

import pytest

from puna.client.stream import Feed, Stream
from puna.errors import ServerFault
from puna.types import Chunk

A = Chunk(text="a")
B = Chunk(text="b", stop_type="eos")


class Watched:
    """A stream, its feed, and how often it was aborted."""

    def __init__(self) -> None:
        self.aborts = 0
        self.feed = Feed()
        self.stream: Stream | None = Stream(5, self.feed, self.abort)

    def abort(self) -> None:
        self.aborts += 1

    @property
    def open(self) -> Stream:
        assert self.stream is not None
        return self.stream


async def test_reads_what_came_before_and_after_it_waited() -> None:
    watched = Watched()
    watched.feed.put([A])
    reading = asyncio.create_task(asyncio.wait_for(anext(watched.open), 1))
    assert await reading == A
    reading = asyncio.create_task(asyncio.wait_for(anext(watched.open), 1))
    await asyncio.sleep(0)
    watched.feed.put([])
    watched.feed.put([B])
    watched.feed.close()
    assert await reading == B
    assert [chunk async for chunk in watched.open] == []
    assert watched.open.id == 5


async def test_an_error_comes_after_the_chunks() -> None:
    watched = Watched()
    watched.feed.put([A])
    watched.feed.close(ServerFault("first"))
    watched.feed.close(ServerFault("second"))
    assert await watched.open.first() == A
    assert await anext(watched.open) == A
    for _ in range(2):
        with pytest.raises(ServerFault, match="first"):
            await watched.open.first()
        with pytest.raises(ServerFault, match="first"):
            await anext(watched.open)


async def test_ready_returns_in_time_and_disturbs_no_other_waiter() -> None:
    watched = Watched()
    reading = asyncio.create_task(anext(watched.open))
    assert not await watched.open.ready(0.01)
    assert not reading.done()
    waiting = asyncio.create_task(watched.open.ready(5))
    await asyncio.sleep(0)
    watched.feed.put([A, B])
    assert await waiting
    assert await reading == A
    assert watched.aborts == 0


async def test_cancelling_any_wait_aborts_once() -> None:
    for wait in (Stream.__anext__, Stream.first, Stream.ready):
        watched = Watched()
        task: asyncio.Task[object] = asyncio.ensure_future(wait(watched.open))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait((task,))
        assert task.cancelled()
        assert watched.aborts == 1
        await watched.open.aclose()
        assert watched.aborts == 1


async def test_closing_drops_what_was_not_read() -> None:
    watched = Watched()
    watched.feed.put([A])
    watched.feed.close(ServerFault("late"))
    await watched.open.aclose()
    assert [chunk async for chunk in watched.open] == []
    assert await watched.open.first() is None


async def test_closing_wakes_a_reader_elsewhere() -> None:
    watched = Watched()
    reading = asyncio.create_task(watched.open.first())
    await asyncio.sleep(0)
    await watched.open.aclose()
    assert await asyncio.wait_for(reading, 1) is None


async def test_dropping_aborts_unless_it_was_read_to_the_end() -> None:
    for read in (False, True):
        watched = Watched()
        if read:
            watched.feed.close()
            assert [chunk async for chunk in watched.open] == []
        watched.stream = None
        gc.collect()
        await asyncio.sleep(0)
        assert watched.aborts == (not read)


def test_dropping_after_the_loop_has_ended() -> None:
    async def make() -> Watched:
        return Watched()

    watched = asyncio.run(make())
    watched.stream = None
    gc.collect()
    assert watched.aborts == 0
