"""One line for each request, if asked for. No body, no query and no key is ever logged."""

from __future__ import annotations

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from puna.log import logger


class RequestLog:
    """Middleware. Logs method, path, status and time once a request is over."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.monotonic()
        status = "no reply"
        finished = False

        async def watched(message: Message) -> None:
            nonlocal status, finished
            if message["type"] == "http.response.start":
                status = str(message["status"])
            elif not message.get("more_body", False):
                finished = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            end = "" if finished else ", client gone"
            path = scope["path"].encode("unicode_escape").decode()
            logger.info("%s %s %s%s %.0f ms", scope["method"], path, status, end, (time.monotonic() - began) * 1000)
