"""Requests over plain asyncio streams: a new connection each, since some servers drop kept ones."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from puna.bench.record import Record, error_text
from puna.bench.response import BrokenResponse, EventParser, ResponseParser
from puna.errors import StartupError

READ = 1 << 16
LONGEST_ERROR = 1 << 16
"""Bytes of an error body that are kept."""

Body = Mapping[str, Any]


class Target:
    """One server under test."""

    def __init__(self, url: str, *, api_key: str = "", model: str = "", timeout: float = 600.0) -> None:
        """`timeout` is the most seconds that one request may take. Raises `StartupError` for what is not a URL."""
        parts = urlsplit(url if "//" in url else f"http://{url}")
        with contextlib.suppress(ValueError):
            self._port = parts.port or (443 if parts.scheme == "https" else 80)
        if parts.scheme not in {"http", "https"} or not parts.hostname or not hasattr(self, "_port"):
            raise StartupError(f"{url!r} is not the address of a server, such as http://127.0.0.1:8080")
        self._host = parts.hostname
        self._authority = parts.netloc.rpartition("@")[2]
        self._prefix = parts.path.rstrip("/").removesuffix("/v1")
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._api_key = api_key
        self._timeout = timeout
        self.url = f"{parts.scheme}://{self._authority}{self._prefix}"
        self.model = model
        """The model's name in requests; found out by `discover` if empty."""

    async def stream(self, path: str, body: Body, on_event: Callable[[Record], None] | None = None) -> Record:
        """Post a streaming request and read its events. What fails is told by `Record.error`, never raised.

        `on_event` is called after each event. Cancelling closes the connection.
        """
        record = Record()
        sent = {**body, "stream": True, "stream_options": {"include_usage": True}, "model": self.model or "default"}
        record.start = time.perf_counter()
        try:
            await asyncio.wait_for(self._read_events(path, msgspec.json.encode(sent), record, on_event), self._timeout)
        except (TimeoutError, asyncio.TimeoutError):
            record.error = f"no end within {self._timeout:.0f} seconds"
        except (OSError, BrokenResponse) as error:
            record.error = str(error) or type(error).__name__
        record.end = time.perf_counter()
        if not record.error and not record.arrivals and not record.completion_tokens:
            record.error = "the answer has no text"
        return record

    async def ask(self, path: str, body: Body) -> tuple[float, Any]:
        """Post a request and read its reply, a JSON value; the seconds that took come first. Raises `BrokenResponse`."""
        content = msgspec.json.encode({**body, "model": self.model or "default"})
        begin = time.perf_counter()
        try:
            status, reply = await asyncio.wait_for(
                self._read_whole(self._head("POST", path, len(content)) + content), self._timeout
            )
        except (TimeoutError, asyncio.TimeoutError) as error:
            raise BrokenResponse(f"no end within {self._timeout:.0f} seconds") from error
        except OSError as error:
            raise BrokenResponse(str(error) or type(error).__name__) from error
        seconds = time.perf_counter() - begin
        if status >= 300:
            raise BrokenResponse(f"HTTP {status}: {_failure_text(reply)}")
        try:
            return seconds, msgspec.json.decode(reply)
        except msgspec.DecodeError as error:
            raise BrokenResponse(f"not JSON: {reply[:100]!r}") from error

    async def _read_whole(self, request: bytes) -> tuple[int, bytes]:
        """Send a request; its reply's status and body."""
        parser, parts = ResponseParser(), []
        async with _Connection(self._host, self._port, self._tls) as (reader, writer):
            writer.write(request)
            while not parser.done and (data := await reader.read(READ)):
                parts.append(parser.feed(data))
        if not parser.done:
            parser.finish()
        return parser.status, b"".join(parts)

    async def discover(self) -> None:
        """Learn the model's name from /v1/models. Raises `StartupError` when nothing answers there."""
        try:
            status, body = await asyncio.wait_for(self._read_whole(self._head("GET", "/v1/models", 0)), 30)
            listed = msgspec.json.decode(body)["data"][0]["id"] if status == 200 else ""
        except (OSError, asyncio.TimeoutError, BrokenResponse) as error:
            raise StartupError(f"{self.url} does not answer: {error or type(error).__name__}") from error
        except (msgspec.DecodeError, LookupError, TypeError):
            listed = ""
        self.model = self.model or str(listed)

    async def _read_events(self, path: str, content: bytes, record: Record, on_event: Callable[[Record], None] | None) -> None:
        response, events = ResponseParser(), EventParser()
        failure = b""
        async with _Connection(self._host, self._port, self._tls) as (reader, writer):
            writer.write(self._head("POST", path, len(content)) + content)
            while not response.done and (data := await reader.read(READ)):
                now = time.perf_counter()
                body = response.feed(data)
                if response.status >= 300:
                    failure = (failure + body)[:LONGEST_ERROR]
                    continue
                for event in events.feed(body):
                    if not record.take(event, now):
                        return
                    if on_event:
                        on_event(record)
        response.finish()
        if response.status >= 300:
            record.error = f"HTTP {response.status}: {_failure_text(failure)}"
            return
        for event in events.finish():
            record.take(event, time.perf_counter())

    def _head(self, method: str, path: str, length: int) -> bytes:
        lines = [
            f"{method} {self._prefix}{path} HTTP/1.1",
            f"Host: {self._authority}",
            "Connection: close",
            "Content-Type: application/json",
            f"Content-Length: {length}",
            *([f"Authorization: Bearer {self._api_key}"] if self._api_key else []),
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class _Connection:
    """Opens a connection and closes it at once, whatever happens."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self._place = host, port, tls

    async def __aenter__(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port, tls = self._place
        reader, self._writer = await asyncio.open_connection(host, port, ssl=tls, limit=READ)
        return reader, self._writer

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()
        # the other end may have gone first, and that is all the same now
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


def _failure_text(body: bytes) -> str:
    try:
        return error_text(msgspec.json.decode(body))
    except msgspec.DecodeError:
        return body[:200].decode("utf-8", "replace")
