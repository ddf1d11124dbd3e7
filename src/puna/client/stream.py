"""The public face of one generation: an async iterator over its chunks."""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from collections.abc import Callable, Iterable

from puna.errors import PunaError
from puna.types import Chunk


class Feed:
    """Where a generation's chunks wait for their reader: without bound, so that a slow reader holds nobody up."""

    def __init__(self) -> None:
        self.chunks: deque[Chunk] = deque()
        self.closed = False
        """No further chunk will come."""
        self.error: PunaError | None = None
        """What the reader gets once it has read the chunks."""
        self._loop = asyncio.get_running_loop()
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def ready(self) -> bool:
        """Whether there is something to read, be it the end."""
        return bool(self.chunks) or self.closed

    def put(self, chunks: Iterable[Chunk]) -> None:
        """Add chunks."""
        self.chunks.extend(chunks)
        if self.ready:
            self._wake()

    def close(self, error: PunaError | None = None) -> None:
        """No more chunks; the first close counts."""
        if not self.closed:
            self.closed = True
            self.error = error
            self._wake()

    def _wake(self) -> None:
        for waiter in self._waiters:
            _wake(waiter)

    async def wait(self, timeout: float | None = None) -> None:
        """Return when there is something to read, or after `timeout` seconds."""
        if self.ready:
            return
        waiter = self._loop.create_future()
        self._waiters.append(waiter)
        timer = None if timeout is None else self._loop.call_later(timeout, _wake, waiter)
        try:
            await waiter
        finally:
            self._waiters.remove(waiter)
            if timer is not None:
                timer.cancel()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _drop(loop: asyncio.AbstractEventLoop, abort: Callable[[], None]) -> None:
    # Garbage may be collected on any thread, and after the loop's end.
    if not loop.is_closed():
        loop.call_soon_threadsafe(abort)


class Stream:
    """One generation's chunks, in order. The last chunk has a `stop_type` other than `none`.

    Closing the stream, cancelling a task that waits in it, or dropping it, read or not, ends the generation at once.
    So do not wrap `__anext__` in a timeout: wait with `ready`.
    """

    def __init__(self, id: int, feed: Feed, abort: Callable[[], None], end_thinking: Callable[[], None] = lambda: None) -> None:
        self.id = id
        """The request's number within its client."""
        self._feed = feed
        self.end_thinking = end_thinking
        """Let the answer think no further, if its generation says what thinking is."""
        # `abort` must not lead back here, or the stream would never be dropped.
        self._abort = abort
        self._finalizer = weakref.finalize(self, _drop, asyncio.get_running_loop(), abort)
        self._finalizer.atexit = False

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Chunk:
        feed = self._feed
        while not feed.ready:
            await self._wait(None)
        if feed.chunks:
            return feed.chunks.popleft()
        self._finalizer.detach()
        if feed.error is not None:
            raise feed.error
        raise StopAsyncIteration

    async def ready(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds; whether the next chunk, the end or an error is there to be read."""
        if not self._feed.ready:
            await self._wait(timeout)
        return self._feed.ready

    async def first(self) -> Chunk | None:
        """Wait for the next chunk and leave it to be read; None at the end.

        Raises the generation's error if nothing comes before it: the time to answer with an error status.
        """
        if not self._feed.ready:
            await self._wait(None)
        if self._feed.chunks:
            return self._feed.chunks[0]
        if self._feed.error is not None:
            raise self._feed.error
        return None

    async def _wait(self, timeout: float | None) -> None:
        try:
            await self._feed.wait(timeout)
        except asyncio.CancelledError:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """End the generation if it still runs, and drop what was not read; a second call does nothing."""
        if self._finalizer.detach() is not None:
            self._abort()
            self._feed.chunks.clear()
            self._feed.close()
            self._feed.error = None
