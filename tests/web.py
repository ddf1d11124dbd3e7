"""An app without a socket: whole requests through httpx, and raw ones that can watch a stream or leave in the middle."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI

from puna.config import ServerSettings
from puna.server.app import create_app
from tests.fakes import FakeEngine

Frame = dict[str, Any]


def client(engine: FakeEngine | None = None, *, host: str = "localhost", **settings: Any) -> httpx.AsyncClient:
    """A client of a fresh app around `engine`."""
    app = create_app(engine or FakeEngine(), ServerSettings(**settings))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=f"http://{host}")


def frames(text: str) -> list[Frame | str]:
    """The decoded `data:` lines of an event stream, other kinds of lines refused."""
    found: list[Frame | str] = []
    for block in text.split("\n\n")[:-1]:
        for line in block.split("\n"):
            assert line.startswith((": ", "data: ")), line
            if line.startswith("data: "):
                data = line.removeprefix("data: ")
                found.append("[DONE]" if data == "[DONE]" else json.loads(data, parse_constant=refuse_constant))
    assert text.endswith("\n\n")
    return found


def objects(text: str) -> list[Frame]:
    """The frames of a stream that are JSON objects."""
    return [frame for frame in frames(text) if isinstance(frame, dict)]


def refuse_constant(name: str) -> float:
    raise AssertionError(f"{name} is not JSON")


class Exchange:
    """One request at the level of ASGI messages."""

    def __init__(self, app: FastAPI, path: str, body: bytes, headers: list[tuple[bytes, bytes]], method: str) -> None:
        self.sent: list[dict[str, Any]] = []
        self.news = asyncio.Event()
        self._inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._inbox.put_nowait({"type": "http.request", "body": body, "more_body": False})
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": b"",
            "headers": [(b"host", b"localhost"), *headers],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8080),
            "scheme": "http",
        }
        self.task = asyncio.create_task(app(scope, self._inbox.get, self._send))

    async def _send(self, message: Any) -> None:
        self.sent.append(message)
        self.news.set()

    def leave(self) -> None:
        """Close the connection."""
        self._inbox.put_nowait({"type": "http.disconnect"})

    @property
    def status(self) -> int | None:
        return next((message["status"] for message in self.sent if message["type"] == "http.response.start"), None)

    @property
    def writes(self) -> list[bytes]:
        """The non-empty pieces of body, in the order they were written."""
        return [message["body"] for message in self.sent if message["type"] == "http.response.body" and message["body"]]

    @property
    def complete(self) -> bool:
        return any(message["type"] == "http.response.body" and not message.get("more_body", False) for message in self.sent)

    async def until(self, condition: Any, timeout: float = 2.0) -> None:
        """Wait for messages until `condition()` holds."""
        async with asyncio_timeout(timeout):
            while not condition():
                self.news.clear()
                await self.news.wait()


@asynccontextmanager
async def asyncio_timeout(seconds: float) -> AsyncIterator[None]:
    """Fail when the block takes longer."""
    task = asyncio.current_task()
    assert task is not None
    handle = asyncio.get_running_loop().call_later(seconds, task.cancel, "timeout")
    try:
        yield
    finally:
        handle.cancel()


@asynccontextmanager
async def exchange(
    app: FastAPI, path: str, body: Any, *, headers: list[tuple[bytes, bytes]] | None = None, method: str = "POST"
) -> AsyncIterator[Exchange]:
    """A running request; it is cancelled when the block ends."""
    running = Exchange(app, path, json.dumps(body).encode(), headers or [], method)
    try:
        yield running
    finally:
        running.task.cancel()
        await asyncio.gather(running.task, return_exceptions=True)


def ordered(value: object) -> str:
    """A test's name for a value: processes that share the tests have to call them the same."""
    return "{" + ", ".join(sorted(map(repr, value))) + "}" if isinstance(value, set) else str(value)
