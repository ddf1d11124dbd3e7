"""Replies: one JSON value, or a stream of server-sent events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from puna.api.disconnect import disconnected, settle
from puna.api.errors import error_frame, known
from puna.errors import PunaError

PING = b": ping\n\n"
DONE = b"data: [DONE]\n\n"


class Json(Response):
    """A reply that is encoded already, or a value to encode; compact in any case."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return content if isinstance(content, bytes) else msgspec.json.encode(content)


class EventStream(Response):
    """Sends whole frames as they come; its status and headers go out before the first one.

    Stops at once when the client leaves. A silent stream gets comment lines, so that nobody on the way takes it for
    dead. An error becomes one last frame.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        frames: AsyncIterator[bytes],
        close: Callable[[], Awaitable[None]],
        *,
        ping_after: float,
        ping_interval: float,
        encode_error: Callable[[PunaError], bytes] = error_frame,
    ) -> None:
        """`frames` brings whole frames, `close` stops what makes them; both times are in seconds, below 0 for no pings."""
        self.status_code = 200
        self.background = None
        self.init_headers({"cache-control": "no-cache", "x-accel-buffering": "no"})
        self._frames = frames
        self._close = close
        self._ping_after = ping_after
        self._ping_interval = ping_interval
        self._encode_error = encode_error
        self._last_write = time.monotonic()
        self._last_was_ping = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        lock = asyncio.Lock()

        async def write(data: bytes, *, more: bool = True) -> None:
            async with lock:
                self._last_write = time.monotonic()
                self._last_was_ping = data is PING
                await send({"type": "http.response.body", "body": data, "more_body": more})

        tasks = [asyncio.create_task(self._produce(write)), asyncio.create_task(disconnected(receive))]
        if self._ping_interval > 0:
            tasks.append(asyncio.create_task(self._ping(write)))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await asyncio.wait(tasks[:2], return_when=asyncio.FIRST_COMPLETED)
            await settle(*tasks[1:])
            if tasks[0].done():
                tasks[0].result()
                await write(b"", more=False)
        finally:
            await settle(*tasks)
            await self._close()

    async def _produce(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        try:
            async for data in self._frames:
                if data:
                    await write(data)
        except Exception as error:  # noqa: BLE001 - the reply has begun: a frame is the only place left for an error
            await write(self._encode_error(known(error)))

    async def _ping(self, write: Callable[[bytes], Awaitable[None]]) -> None:
        while True:
            patience = self._ping_interval if self._last_was_ping else max(self._ping_after, self._ping_interval)
            silent = time.monotonic() - self._last_write
            if silent < patience:
                await asyncio.sleep(patience - silent)
            else:
                await write(PING)
