"""Errors raised while a route is looked for or answered, as replies."""

from __future__ import annotations

from typing import Any, cast

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from puna.api.disconnect import ClientGone
from puna.api.errors import error_body, error_headers, is_messages, messages_error
from puna.api.replies import Json
from puna.errors import InvalidRequest, NotFound, PunaError


async def puna_error(request: Request, error: Exception) -> Response:
    """An error that was raised on purpose."""
    error = cast("PunaError", error)
    return Json(error_body(error, request.scope["path"]), status_code=error.status, headers=error_headers(error))


async def client_gone(_request: Request, _error: Exception) -> Response:
    """Nobody reads this."""
    return Response(status_code=499)


async def http_error(request: Request, error: Exception) -> Response:
    """No such route, or not with this method."""
    error = cast("HTTPException", error)
    path = request.scope["path"][:200]
    if error.status_code == 404:
        return await puna_error(request, NotFound(f"there is no {path!r} here"))
    message = f"{request.method} is not allowed for {path!r}" if error.status_code == 405 else str(error.detail)
    value: dict[str, Any] = {
        "error": {"code": error.status_code, "message": message, "type": "invalid_request_error", "param": None}
    }
    if is_messages(path):
        value = messages_error(InvalidRequest(message))
    return Json(value, status_code=error.status_code, headers=dict(error.headers or {}))


def add_handlers(app: FastAPI) -> None:
    """Let the app answer errors in the one shape that clients expect."""
    app.add_exception_handler(PunaError, puna_error)
    app.add_exception_handler(ClientGone, client_gone)
    app.add_exception_handler(HTTPException, http_error)
