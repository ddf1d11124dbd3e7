"""The last line of defence: whatever goes wrong below becomes an error reply in the usual shape."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from puna.api.disconnect import ClientGone
from puna.api.errors import known
from puna.server.asgi import reply_error


class ErrorBoundary:
    """Middleware. Nothing gets through it but what the server itself raises to end a task."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except ClientGone:
            return
        except Exception as error:  # noqa: BLE001 - `known` logs what nobody foresaw
            wanted = known(error)
            if not started:
                await reply_error(scope, send, wanted)
