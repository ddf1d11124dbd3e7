"""The ASGI app: routes, and around them what guards them."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi_offline import FastAPIOffline
from starlette.middleware import Middleware
from starlette.types import ASGIApp

from puna import __version__
from puna.api.anthropic import routes as anthropic
from puna.api.embeddings import routes as embeddings
from puna.api.extras import routes as extras
from puna.api.native import routes as native
from puna.api.openai import routes as openai
from puna.api.openapi import components
from puna.api.rerank import routes as rerank
from puna.api.responses import routes as responses
from puna.api.responses.store import ResponseStore
from puna.api.transcription import routes as transcription
from puna.config import ServerSettings
from puna.server.auth import KeyCheck
from puna.server.boundary import ErrorBoundary
from puna.server.cors import Cors
from puna.server.handlers import add_handlers
from puna.server.health import health_router
from puna.server.hosts import HostCheck
from puna.server.metrics import Metrics, metrics_router
from puna.server.page import page_router
from puna.server.replay import Recordings
from puna.server.request_log import RequestLog
from puna.server.resume import ResumableStreams
from puna.service.grammars import Preparer
from puna.service.ports import Engine
from puna.service.service import Service

DESCRIPTION = "A local LLM server for GGUF models. Unknown fields are ignored; null is the same as leaving a field out."


def create_app(
    engine: Engine,
    settings: ServerSettings,
    grammars: Preparer | None = None,
    *,
    models: Callable[[ASGIApp], ASGIApp] | None = None,
    kept: ResponseStore | None = None,
) -> FastAPI:
    """The app that serves one engine. Works while the model still loads: model routes then answer 503.

    `grammars` prepares constraints; without it threads of this process do. `models` is a middleware for servers of several
    models: it answers what is about a model. `kept` has the replies that clients may come back to, if others share them.

    The `Service` is found at `app.state.service`, for whoever has to tell it that the server is shutting down.
    """
    recordings = Recordings()
    middleware = [
        Middleware(Cors, origins=settings.cors_origins),
        Middleware(HostCheck, bound_to=settings.host, allowed=settings.allowed_hosts),
        Middleware(KeyCheck, keys=settings.api_keys),
        Middleware(ErrorBoundary),
        Middleware(ResumableStreams, recordings=recordings),
    ]
    if models is not None:
        middleware.append(Middleware(models))
    if settings.request_log:
        middleware.insert(0, Middleware(RequestLog))
    app = FastAPIOffline(
        title="puna",
        version=__version__,
        description=DESCRIPTION,
        docs_url="/docs",
        static_url="/docs/files",
        redoc_url=None,
        redirect_slashes=False,
        middleware=middleware,
    )
    app.state.recordings = recordings
    _document_bodies(app)
    _add_routes(app, engine, settings, grammars, kept if kept is not None else ResponseStore())
    return app


def create_inner_app(
    engine: Engine, settings: ServerSettings, grammars: Preparer | None = None, kept: ResponseStore | None = None
) -> FastAPI:
    """The same without what guards and documents it: the app of one model of several, behind another app that does so."""
    app = FastAPI(title="puna", version=__version__, openapi_url=None, redirect_slashes=False)
    _add_routes(app, engine, settings, grammars, kept if kept is not None else ResponseStore())
    return app


def _add_routes(app: FastAPI, engine: Engine, settings: ServerSettings, grammars: Preparer | None, kept: ResponseStore) -> None:
    app.state.metrics = metrics = Metrics(engine)
    app.state.service = service = Service(engine, settings, metrics, grammars)
    # FastAPI remembers the endpoints of apps that are gone: these must not keep a model's vocabulary with them
    service, metrics = weakref.proxy(service), weakref.proxy(metrics)
    add_handlers(app)
    # first those of which there are most requests a second: a route is found by trying one after another
    app.include_router(embeddings.embeddings_router(service))
    app.include_router(rerank.rerank_router(service))
    app.include_router(health_router(service))
    app.include_router(metrics_router(service, metrics))
    app.include_router(native.native_router(service))
    app.include_router(openai.openai_router(service))
    app.include_router(anthropic.anthropic_router(service))
    app.include_router(responses.responses_router(service, kept))
    app.include_router(transcription.transcription_router(service))
    app.include_router(extras.extras_router(service))
    app.include_router(page_router())


def _document_bodies(app: FastAPI) -> None:
    modules = (native, openai, anthropic, responses, transcription, extras, embeddings, rerank)
    models = tuple(model for module in modules for model in module.MODELS)

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
            schema.setdefault("components", {}).setdefault("schemas", {}).update(components(models))
            for path in schema["paths"].values():
                for operation in path.values():
                    operation["responses"]["default"] = {
                        "description": "Error",
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
                    }
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # FastAPI's documented way to extend the document
