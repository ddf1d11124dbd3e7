"""A small OpenAI-compatible server in the test's own process, over bare asyncio."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Reply = tuple[int, dict[str, str], list[bytes]]
"""Status, headers, and the pieces of the body, sent with a pause after each."""


def events(*frames: object) -> bytes:
    """Frames as server-sent events."""
    return b"".join(b"data: " + (frame if isinstance(frame, str) else json.dumps(frame)).encode() + b"\n\n" for frame in frames)


def chunked(pieces: list[bytes]) -> list[bytes]:
    """A body in chunked encoding."""
    return [*(f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in pieces), b"0\r\n\r\n"]


def whole(value: object) -> Reply:
    """A JSON value as a reply."""
    content = json.dumps(value).encode()
    return 200, {"Content-Length": str(len(content))}, [content]


@dataclass
class FakeServer:
    """Answers with one piece of text for every token asked for, and remembers what it was asked."""

    pause: float = 0.0
    usage: bool = True
    chunks: bool = True
    cached: int = 0
    most_tokens: int = 10000
    """Where the model ends by itself."""
    lost_documents: int = 0
    """Documents that no ranking names."""
    fail: Callable[[str], Reply | None] = lambda path: None
    """Says how a path fails, None for well."""
    requests: list[tuple[str, dict[str, Any], dict[str, str]]] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    hung_up: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[FakeServer]:
        server = await asyncio.start_server(self._handle, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            while self.running:  # noqa: ASYNC110  # handlers end by themselves, none of them knows that it is the last
                await asyncio.sleep(0.005)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
            body = json.loads(await reader.readexactly(int(headers["content-length"])) or b"{}")
            path = first.split(" ")[1]
            self.requests.append((path, body, headers))
            await self._reply(writer, self.fail(path) or self._answer(path, body))
        except ConnectionError:
            self.hung_up += 1
        finally:
            self.running -= 1
            writer.close()

    async def _reply(self, writer: asyncio.StreamWriter, reply: Reply) -> None:
        status, headers, pieces = reply
        head = [f"HTTP/1.1 {status} Fine", *(f"{name}: {value}" for name, value in headers.items())]
        writer.write(("\r\n".join(head) + "\r\n\r\n").encode())
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(self.pause)
            if writer.transport.is_closing():
                raise ConnectionResetError

    def _answer(self, path: str, body: dict[str, Any]) -> Reply:
        if path.endswith("/models"):
            return whole({"data": [{"id": "fake-model"}]})
        if path.endswith("/embeddings"):
            texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
            return whole({"data": [{"embedding": [len(text), -1.0]} for text in texts]})
        if path.endswith("/rerank"):
            places = range(len(body["documents"]) - self.lost_documents)
            return whole({"results": [{"index": index} for index in reversed(places)]})
        n = min(body["max_tokens"], self.most_tokens)
        prompt = body["prompt"] if "prompt" in body else json.dumps(body["messages"])
        frames: list[object] = [{"choices": [self._choice(path, f"w{index} ")]} for index in range(n)]
        if self.usage:
            counts = {"prompt_tokens": len(prompt.split()), "completion_tokens": n}
            frames.append({"choices": [], "usage": {**counts, "prompt_tokens_details": {"cached_tokens": self.cached}}})
        pieces = [events(frame) for frame in [*frames, "[DONE]"]]
        if self.chunks:
            return 200, {"Transfer-Encoding": "chunked"}, chunked(pieces)
        return 200, {}, pieces

    @staticmethod
    def _choice(path: str, text: str) -> dict[str, object]:
        return {"index": 0, "delta": {"content": text}} if "chat" in path else {"index": 0, "text": text}
