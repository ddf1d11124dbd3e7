"""The `Host` check: while the server listens on loopback only, a page elsewhere must not reach it by a name of its own."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from puna.errors import PermissionDenied
from puna.server.asgi import header, reply_error
from puna.server.cors import is_loopback_name


class HostCheck:
    """Middleware. Does nothing unless the server is bound to a loopback address."""

    def __init__(self, app: ASGIApp, *, bound_to: str, allowed: Iterable[str]) -> None:
        self._app = app
        self._active = is_loopback_name(bound_to)
        self._allowed = frozenset(name.lower() for name in (bound_to, *allowed))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._active and scope["type"] in ("http", "websocket") and not self._expected(header(scope, b"host")):
            if scope["type"] == "http":
                await reply_error(
                    scope, send, PermissionDenied("this server does not answer to that host name; see --allowed-host")
                )
            else:
                await send({"type": "websocket.close", "code": 1008})
            return
        await self._app(scope, receive, send)

    def _expected(self, value: str | None) -> bool:
        # Only programs leave the header out, and those can reach the server anyway.
        return value is None or is_loopback_name(host_name(value)) or host_name(value) in self._allowed


def host_name(value: str) -> str:
    """The name or address in a Host header, in lower case, without port, brackets and closing dot."""
    value = value.strip().lower()
    if value.startswith("["):
        return value[1:].partition("]")[0]
    return value.partition(":")[0].rstrip(".")
