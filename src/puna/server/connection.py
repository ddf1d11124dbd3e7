"""One client's connection: what it may send before anybody has looked at a key, and for how long it may take.

uvicorn's protocol bounds neither the size of a request's head nor the time until it is whole, and says in plain text, even amidst
another reply, that a request is malformed.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

MAX_HEAD = 64 * 1024
"""Most bytes of a request's line and headers."""

PATIENCE = 60.0
"""Seconds until a request's head has to be whole, and seconds that its body may make no progress."""


class HeadTooLarge(Exception):
    """The head of a request is over the limit; raised inside the parser, which stops."""


class Connection(HttpToolsProtocol):
    """uvicorn's protocol within bounds."""

    patience = PATIENCE

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head = 0
        self._unfinished = 0
        """Bytes of a header that the parser has not told of yet, those of the piece it began in left out."""
        self._in_head = False
        self._too_large = False
        self._clock: asyncio.TimerHandle | None = None
        self._cycles: list[RequestResponseCycle] = []

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        self._leave()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        before = self._head if self._in_head else -1
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._in_head and self._head == before:
            self._unfinished += len(data)
            if self._head + self._unfinished > MAX_HEAD:
                self._refuse_head()
                return
        if self._clock is None and self._is_idle():
            self._start_clock()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head = 0
        self._in_head = True
        self._start_clock()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        super().on_headers_complete()
        self._cycles = [cycle for cycle in (*self._cycles, self.cycle) if not cycle.response_complete]
        self._start_clock()

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._start_clock()

    def on_message_complete(self) -> None:
        self._stop_clock()
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """What uvicorn calls for whatever it cannot read."""
        if self._too_large:
            self._refuse_head()
        else:
            self._refuse(400, "this is not a valid HTTP request; the server speaks plain HTTP")

    def _unsupported_upgrade_warning(self) -> None:
        """Nothing: the request is answered as if it had not asked for another protocol."""

    def _count(self, n: int) -> None:
        self._head += n
        self._unfinished = 0
        if self._head > MAX_HEAD:
            self._too_large = True
            raise HeadTooLarge

    def _refuse_head(self) -> None:
        self._refuse(431, f"the request's line and headers have more than {MAX_HEAD} bytes")

    def _refuse(self, status: int, message: str) -> None:
        """Say what is wrong, unless another reply is under way, and close the connection."""
        if all(cycle.response_complete for cycle in self._cycles):
            error = {"code": status, "message": message, "type": "invalid_request_error", "param": None}
            body = msgspec.json.encode({"error": error})
            head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(body)
            self.transport.write(STATUS_LINE[status] + head + body)
        self._leave()
        self._stop_clock()
        self.transport.close()

    def _leave(self) -> None:
        """Tell everything that still works for this client that it has gone."""
        for cycle in self._cycles:
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _start_clock(self) -> None:
        self._stop_clock()
        self._clock = self.loop.call_later(self.patience, self._give_up)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _give_up(self) -> None:
        self._clock = None
        if self.transport.is_closing():
            return
        if self.flow.read_paused:  # it is not the client who lets the other one wait
            self._start_clock()
        elif self._in_head:
            self._refuse(408, "the request was not sent within a minute")
        else:
            self._leave()
            self.transport.close()
