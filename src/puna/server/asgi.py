"""Small helpers for middleware that speaks ASGI directly."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.types import Scope, Send

from puna.api.errors import error_body, error_headers
from puna.errors import PunaError

Headers = list[tuple[bytes, bytes]]


def header(scope: Scope, name: bytes) -> str | None:
    """A request header's first value; `name` in lower case."""
    for key, value in scope["headers"]:
        if key == name:
            text: str = value.decode("latin-1")
            return text
    return None


async def reply(send: Send, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes = b"") -> None:
    """Send a whole response."""
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})
    await send({"type": "http.response.body", "body": body})


async def reply_error(scope: Scope, send: Send, error: PunaError) -> None:
    """Send an error in the shape that the path's clients expect."""
    body = error_body(error, scope["path"])
    headers: Headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += ((name.encode(), value.encode()) for name, value in error_headers(error).items())
    await reply(send, error.status, headers, body)
