"""Connections at the level of bytes: what is not HTTP, too much of it, and too slow."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fastapi import FastAPI

from puna.config import ServerSettings
from puna.server.app import create_app
from puna.server.connection import MAX_HEAD, Connection
from puna.server.lifecycle import HttpServer, http_config
from puna.server.sockets import listen
from tests.fakes import FakeEngine, say
from tests.web import asyncio_timeout

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
STREAM = b'{"prompt":"x","stream":true}'
POST = b"POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncIterator[int]:
    """The port of a real server around the app."""
    socket = listen("127.0.0.1", 0)
    server = HttpServer(http_config(app))
    task = asyncio.create_task(server.serve(sockets=[socket]))
    try:
        yield socket.getsockname()[1]
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def connection(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def said(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of a reply after which the server closes."""
    async with asyncio_timeout(10):
        head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head and b"connection: close" in head
    return int(head.split()[1]), body


def app(engine: FakeEngine | None = None) -> FastAPI:
    return create_app(engine or FakeEngine(), ServerSettings())


@pytest.mark.parametrize("data", [b"\x16\x03\x01\x02\x00\x01", b"hello\r\n\r\n", HEALTH + b"a b: c\r\n\r\n", POST % -5])
async def test_what_is_not_http_is_answered_in_json(data: bytes) -> None:
    async with serving(app()) as port, connection(port) as (reader, writer):
        writer.write(data)
        status, body = await said(reader)
        assert status == 400 and "valid HTTP" in json.loads(body)["error"]["message"]


@pytest.mark.parametrize(
    "more", [b"X: " + b"x" * MAX_HEAD, b"X: y\r\n" * MAX_HEAD, b"X: " + b"x" * 4 * 1024 * 1024], ids=["one", "many", "endless"]
)
async def test_a_large_head_is_refused(more: bytes) -> None:
    async with serving(app()) as port, connection(port) as (reader, writer):
        writer.write(HEALTH + more + b"\r\n\r\n")
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
        assert head.split()[1] == b"431"


async def test_heads_up_to_the_limit_and_large_bodies_behind_small_heads_are_fine() -> None:
    body = b'{"content":"a","ignored":"' + b"x" * 8 * MAX_HEAD + b'"}'
    head = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\nX: %s\r\n\r\n"
    async with serving(app()) as port, connection(port) as (reader, writer):
        for n in (10, MAX_HEAD - 100):
            request = head % (len(body), b"x" * n) + body
            for part in (request[: n // 2], request[n // 2 :], request):  # once in two parts, once more at a stretch
                writer.write(part)
                await asyncio.sleep(0.01)
            for _ in range(2):
                reply = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
                assert reply.split()[1] == b"200"
                length = next(line for line in reply.split(b"\r\n") if line.startswith(b"content-length:"))
                await reader.readexactly(int(length.split()[1]))


async def test_garbage_behind_a_request_does_not_get_into_its_reply() -> None:
    engine = FakeEngine(script=lambda _: [*say("a", "b")[:1], 3600.0])
    async with serving(app(engine)) as port, connection(port) as (reader, writer):
        writer.write(POST % len(STREAM) + STREAM)
        await asyncio.wait_for(reader.readuntil(b"data: "), 10)
        writer.write(b"\x00garbage\r\n\r\n")
        assert b"HTTP/1.1" not in await asyncio.wait_for(reader.read(-1), 10)
        async with asyncio_timeout(5):
            while not engine.streams[0].closed:  # noqa: ASYNC110 - there is no event for what a fake does
                await asyncio.sleep(0.005)


@pytest.mark.parametrize("data", [b"", b"\r\n", HEALTH, POST % 100, POST % 100 + b'{"prompt"'])
async def test_who_is_too_slow_is_left(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(Connection, "patience", 0.1)
    async with serving(app()) as port, connection(port) as (reader, writer):
        writer.write(data)
        answer = await asyncio.wait_for(reader.read(-1), 10)
        assert answer == b"" or b" 408 " in answer.split(b"\r\n")[0]


async def test_who_waits_for_an_answer_is_not_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "patience", 0.05)
    engine = FakeEngine(script=lambda _: say("a", "b", pause=0.2))
    async with serving(app(engine)) as port, connection(port) as (reader, writer):
        writer.write(POST % len(STREAM) + STREAM)
        text = await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), 10)
        assert b'"content":"b"' in text
        writer.write(HEALTH + b"\r\n")
        assert b"200" in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
