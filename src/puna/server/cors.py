"""Which web pages may call this server from a browser."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from puna.server.asgi import Headers, header, reply

METHODS = b"GET, POST, DELETE, OPTIONS"


class Cors:
    """Middleware. Answers preflight requests itself, before anybody asks for a key, and marks every reply.

    Pages of loopback origins and of the configured ones may call; `*` lets all pages call, but without credentials.
    """

    def __init__(self, app: ASGIApp, origins: Iterable[str]) -> None:
        self._app = app
        listed = {origin.rstrip("/").lower() for origin in origins}
        self._any = "*" in listed
        self._origins = listed - {"*"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = self._headers(header(scope, b"origin"))
        if scope["method"] == "OPTIONS":
            await reply(send, 204, self._preflight(scope, headers))
            return

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *headers]}
            await send(message)

        await self._app(scope, receive, marked)

    def _headers(self, origin: str | None) -> Headers:
        if origin is None:
            return [(b"vary", b"Origin")]
        allowed: Headers = []
        if origin.lower() in self._origins or is_loopback_origin(origin):
            allowed = [
                (b"access-control-allow-origin", origin.encode("latin-1")),
                (b"access-control-allow-credentials", b"true"),
            ]
        elif self._any:
            allowed = [(b"access-control-allow-origin", b"*")]
        if allowed:
            allowed.append((b"access-control-expose-headers", b"Retry-After"))
        return [*allowed, (b"vary", b"Origin")]

    def _preflight(self, scope: Scope, headers: Headers) -> Headers:
        if len(headers) == 1:
            return headers
        wanted = header(scope, b"access-control-request-headers") or "*"
        return [
            *headers,
            (b"access-control-allow-methods", METHODS),
            (b"access-control-allow-headers", wanted.encode("latin-1")),
            (b"access-control-allow-private-network", b"true"),
            (b"access-control-max-age", b"600"),
        ]


def is_loopback_origin(origin: str) -> bool:
    """Whether a page's origin is this very machine."""
    try:
        parts = urlsplit(origin)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    plain = not (parts.path or parts.query or parts.fragment or "@" in parts.netloc)
    return parts.scheme in ("http", "https") and plain and is_loopback_name(host)


def is_loopback_name(host: str) -> bool:
    """Whether a host name or address, without port, means this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
