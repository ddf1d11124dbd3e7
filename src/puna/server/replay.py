"""Streams that outlive their connection: what they have sent, for as long as somebody may come back for it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque

MAX_STREAM = 4 * 1024 * 1024
"""Bytes that are kept of one stream; the oldest go first."""

MAX_STREAMS = 256
MAX_BYTES = 64 * 1024 * 1024
"""Bytes that are kept of all streams; those that have ended go first, the oldest before the newer ones."""

KEPT_AFTER_END = 600.0
"""Seconds that a stream is kept once it has ended."""

Key = tuple[str, str]
"""The caller's API key and its name for the conversation: nobody finds the streams of another key."""


class Recording:
    """The bytes of one stream by their offsets, and the news that there are more."""

    def __init__(self, limit: int = MAX_STREAM) -> None:
        self._limit = limit
        self._parts: deque[bytes] = deque()
        self._changed = asyncio.Event()
        self.begin = 0
        """Offset of the first byte that is still there."""
        self.end = 0
        """Offset behind the last one."""
        self.complete = False
        self.stopped = asyncio.Event()
        """Set by whoever wants the stream to end."""

    def __len__(self) -> int:
        return self.end - self.begin

    def add(self, data: bytes) -> None:
        """Take in what was sent next."""
        if data:
            self._parts.append(data)
            self.end += len(data)
            while len(self) > self._limit and len(self._parts) > 1:
                self.begin += len(self._parts.popleft())
            self._wake()

    def finish(self) -> None:
        """Nothing more will come."""
        self.complete = True
        self._wake()

    def since(self, offset: int) -> bytes:
        """What is there from `offset` on, which lies between `begin` and `end`."""
        at = self.begin
        found: list[bytes] = []
        for part in self._parts:
            if at + len(part) > offset:
                found.append(part[max(0, offset - at) :])
            at += len(part)
        return b"".join(found)

    async def more(self, offset: int) -> bool:
        """Wait until there is something behind `offset`; False when there never will be."""
        while self.end <= offset:
            if self.complete:
                return False
            await self._changed.wait()
        return True

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Recordings:
    """The streams that can be found again, within bounds."""

    def __init__(self, *, kept: float = KEPT_AFTER_END, max_streams: int = MAX_STREAMS, max_bytes: int = MAX_BYTES) -> None:
        self._kept = kept
        self._max_streams = max_streams
        self._max_bytes = max_bytes
        self._found: OrderedDict[Key, Recording] = OrderedDict()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: Key) -> Recording | None:
        return self._found.get(key)

    def put(self, key: Key, recording: Recording) -> None:
        """Keep a stream that begins; one of the same conversation before it ends."""
        self.stop(key)
        self._found[key] = recording
        self._trim()

    def ended(self, key: Key, recording: Recording) -> None:
        """The stream has ended: forget it after a while."""
        asyncio.get_running_loop().call_later(self._kept, self._forget, key, recording)
        self._trim()

    def stop(self, key: Key) -> None:
        """End a stream, if there is one, and forget it."""
        recording = self._found.pop(key, None)
        if recording is not None:
            recording.stopped.set()

    def stop_all(self) -> None:
        """End and forget everything."""
        for key in list(self._found):
            self.stop(key)

    def _forget(self, key: Key, recording: Recording) -> None:
        if self._found.get(key) is recording:
            del self._found[key]

    def _trim(self) -> None:
        for key in [key for key, one in self._found.items() if one.complete]:
            if len(self._found) <= self._max_streams and sum(map(len, self._found.values())) <= self._max_bytes:
                return
            del self._found[key]
        while len(self._found) > self._max_streams:
            self.stop(next(iter(self._found)))
