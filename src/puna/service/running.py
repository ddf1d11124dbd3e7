"""Generations that run for one request: several streams merged into one, in the order in which things happen."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence

from puna.errors import ServerFault
from puna.service.ports import Observer, Stream
from puna.types import Chunk, Generation, Timings

Event = tuple[int, Chunk]
"""A generation's index and its next chunk."""


class Running:
    """An async iterator of batches: everything that came since the last one, so that a step costs one write.

    Ends when every generation has ended; raises the first error of any of them, after which all are stopped. After `cut`
    it ends too, and those that still ran have no end among their chunks.
    """

    def __init__(self, generations: Sequence[Generation], streams: Sequence[Stream], observer: Observer) -> None:
        self.generations = tuple(generations)
        self._streams = tuple(streams)
        self._observer = observer
        self._began = time.monotonic()
        self._ready: deque[Event] = deque()
        self._error: Exception | None = None
        self._cut = False
        self.turn: object = None
        """Whatever has to live as long as this."""
        self._wake = asyncio.Event()
        self._left = len(self._streams)
        self._pumps = [asyncio.create_task(self._pump(index, stream)) for index, stream in enumerate(self._streams)]

    async def _pump(self, index: int, stream: Stream) -> None:
        first_token: float | None = None
        ended = False
        try:
            async for chunk in stream:
                if first_token is None and chunk.tokens:
                    first_token = time.monotonic() - self._began
                if chunk.stop_type != "none":
                    ended = True
                    self._observer.finished(chunk.timings or Timings(), first_token)
                self._ready.append((index, chunk))
                self._wake.set()
            if not ended:
                self._error = self._error or ServerFault("the engine ended an answer without saying why")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is raised to the reader
            self._error = self._error or error
        finally:
            self._left -= 1
            self._wake.set()

    def __aiter__(self) -> Running:
        return self

    async def __anext__(self) -> tuple[Event, ...]:
        while not self._ready:
            if self._error is not None:
                await self.aclose()
                raise self._error
            if self._cut or not self._left:
                raise StopAsyncIteration
            self._wake.clear()
            await self._wake.wait()
        batch = tuple(self._ready)
        self._ready.clear()
        return batch

    def end_thinking(self) -> bool:
        """Let every answer that still runs think no further. Whether there is any."""
        for stream in self._streams:
            stream.end_thinking()
        return self._left > 0

    async def cut(self) -> None:
        """Stop what still runs; what has come until now can still be read."""
        self._cut = True
        await self.aclose()
        self._wake.set()

    async def aclose(self) -> None:
        """Stop whatever still runs. May be called more than once."""
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)
        await asyncio.gather(*(stream.aclose() for stream in self._streams))
