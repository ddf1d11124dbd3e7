"""Requests to the model that they mean: a middleware in front of the models' own apps."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from urllib.parse import parse_qs

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from puna.api import body
from puna.api.errors import error_body, error_headers
from puna.api.multipart import is_multipart, parse_form
from puna.api.replies import EventStream, Json
from puna.errors import InvalidRequest, NotFound, PunaError, Unavailable
from puna.models.catalogue import Entry, Job
from puna.server.asgi import header
from puna.server.jobs import job_of, may_load
from puna.server.models_routes import Models, model_object, models_object, news_frames

UNLOAD_GRACE = 30.0
"""Seconds that answers of a model get to end when somebody unloads it."""


class _Named(msgspec.Struct):
    model: object = None


class Dispatcher:
    """Middleware. What is about no model goes on to the app behind it."""

    def __init__(self, app: ASGIApp, models: Models, *, max_body: int, autoload: bool) -> None:
        self._app = app
        self._models = models
        self._max_body = max_body
        self._autoload = autoload
        self._created = int(time.time())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method, path = "GET" if scope["method"] == "HEAD" else scope["method"], scope["path"]
        try:
            reply = await self._own(method, path, scope, receive)
            if reply is not None:
                await reply(scope, receive, send)
                return
            job = job_of(method, path)
            if job is None:
                await self._app(scope, receive, send)
            else:
                await self._forward(method, path, job, scope, receive, send)
        except PunaError as error:
            failed = Json(error_body(error, path), status_code=error.status, headers=error_headers(error))
            await failed(scope, receive, send)

    async def _own(self, method: str, path: str, scope: Scope, receive: Receive) -> Response | None:
        """The reply to what is about the models themselves."""
        if method == "GET" and path in ("/health", "/v1/health"):
            return Json(b'{"status":"ok"}')
        if method == "GET" and path in ("/models", "/v1/models"):
            return Json(models_object(self._models, created=self._created))
        if method == "GET" and path == "/models/sse":
            return EventStream(news_frames(self._models), _nothing, ping_after=-1, ping_interval=-1)
        if method == "GET" and path.startswith("/v1/models/"):
            return Json(model_object(self._models, self._known(path.removeprefix("/v1/models/")), created=self._created))
        if method == "POST" and path in ("/models/load", "/models/unload"):
            value = body.parse(await body.read(Request(scope, receive), self._max_body))
            name = value.get("model")
            if not isinstance(name, str):
                raise InvalidRequest("Field 'model': a text is expected", param="model")
            entry = self._known(name)
            if path.endswith("unload"):
                await self._models.unload(entry, grace=UNLOAD_GRACE)
            else:
                await self._models.load(entry)
            return Json({"success": True})
        if path == "/metrics" and method == "GET":
            return await self._metrics(scope)
        return None

    async def _metrics(self, scope: Scope) -> Response | None:
        if _query(scope, "model"):
            return None
        lines = ["# HELP puna:model_loaded Whether a model is loaded", "# TYPE puna:model_loaded gauge"]
        for entry in self._models.catalogue.entries:
            name = entry.name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
            lines.append(f'puna:model_loaded{{model="{name}"}} {int(self._models.loaded(entry) is not None)}')
        return Response("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

    def _known(self, name: str) -> Entry:
        entry = self._models.catalogue.get(name)
        if entry is None:
            names = ", ".join(one.name for one in self._models.catalogue.entries[:30])
            raise NotFound(f"there is no model called {name[:100]!r}; there are: {names}", param="model")
        return entry

    async def _forward(self, method: str, path: str, job: Job, scope: Scope, receive: Receive, send: Send) -> None:
        name: str | None = _query(scope, "model")
        if method == "POST":
            raw = await body.read(Request(scope, receive), self._max_body)
            kind = header(scope, b"content-type") or ""
            named = partial(_model_in, raw, kind)
            name = name or (named() if len(raw) < body.LARGE else await asyncio.to_thread(named))
            receive = _again(raw, receive)
        entry = self._models.catalogue.choose(name, job)
        if not (may_load(method, path) and self._autoload) and self._models.loaded(entry) is None:
            raise Unavailable(f"the model {entry.name!r} is not loaded; POST /models/load loads it")
        async with self._models.lease(entry) as served:
            await served.app(scope, receive, send)


def _query(scope: Scope, name: str) -> str:
    query: bytes = scope["query_string"]
    return parse_qs(query.decode("latin-1")).get(name, [""])[0]


def _model_in(raw: bytes, content_type: str) -> str | None:
    """The model that a body names. Raises `InvalidRequest` for one that is neither a form nor a JSON object."""
    if is_multipart(content_type):
        return parse_form(raw, content_type).first("model")
    body.check_shape(raw)
    try:
        named = msgspec.json.decode(raw, type=_Named)
    except (msgspec.DecodeError, UnicodeDecodeError):
        body.parse(raw)  # says what is wrong; what it still can read names no model
        return None
    return named.model if isinstance(named.model, str) and named.model else None


def _again(raw: bytes, receive: Receive) -> Receive:
    """A body that was read, once more, and then what comes after it."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": raw, "more_body": False}

    return again


async def _nothing() -> None:
    return None
