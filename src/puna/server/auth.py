"""API keys: every path needs one unless it is on the public list."""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from puna.errors import AuthenticationFailed
from puna.server.asgi import header, reply_error
from puna.server.paths import PUBLIC


class KeyCheck:
    """Middleware. Without configured keys it lets everything pass."""

    def __init__(self, app: ASGIApp, keys: Iterable[str]) -> None:
        self._app = app
        self._keys = tuple(key.encode() for key in keys)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._keys and not self._allowed(scope):
            await reply_error(scope, send, AuthenticationFailed("Invalid API Key"))
        elif scope["type"] == "websocket" and self._keys:
            await send({"type": "websocket.close", "code": 1008})
        else:
            await self._app(scope, receive, send)

    def _allowed(self, scope: Scope) -> bool:
        if scope["path"] in PUBLIC and scope["method"] in ("GET", "HEAD"):
            return True
        given = (bearer_token(header(scope, b"authorization")), header(scope, b"x-api-key"))
        return any(self._known(key) for key in given if key)

    def _known(self, key: str) -> bool:
        # Every key is compared in full: the time it takes must not tell which one was nearly right.
        data = key.encode("latin-1")
        equal = [hmac.compare_digest(data, known) for known in self._keys]
        return True in equal


def bearer_token(value: str | None) -> str:
    """The token in an Authorization header; empty where there is none. The scheme's case does not matter."""
    scheme, _, token = (value or "").strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
