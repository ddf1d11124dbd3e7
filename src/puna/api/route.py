"""What the routes of all dialects have in common: read, validate, work while the client is there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from puna.api import body
from puna.api.decode import Decoded, naming
from puna.api.disconnect import unless_disconnected
from puna.api.fields import GenerationFields
from puna.api.openapi import request_body
from puna.api.replies import EventStream
from puna.service.running import Running
from puna.service.service import Service

Model = TypeVar("Model", bound=BaseModel)
Handler = Callable[[Model], Coroutine[Any, Any, Response]]


def add_post(router: APIRouter, service: Service, paths: tuple[str, ...], model: type[Model], handler: Handler[Model]) -> None:
    """Let `handler` answer POST requests to all `paths`, with the validated body; it is cancelled if the client leaves."""

    async def endpoint(request: Request) -> Response:
        raw = await body.read(request, service.settings.max_body)
        fields = body.validate(model, body.parse(raw))
        return await unless_disconnected(request.receive, handler(fields))

    name = getattr(handler, "__name__", "endpoint")
    for path in paths:
        router.add_api_route(
            path,
            endpoint,
            methods=["POST"],
            name=name,
            summary=name.replace("_", " ").capitalize(),
            description=handler.__doc__ or "",
            response_model=None,
            openapi_extra=request_body(model),
        )


async def start(service: Service, prompts: list[tuple[int, ...]], decoded: Decoded, *, every_token: bool = False) -> Running:
    """Check the constraint and admit the request: what is wrong with either is known before a reply begins."""
    if decoded.params.constraint is not None:
        with naming(decoded.constraint_field):
            await service.check_constraint(decoded.params.constraint)
    return await service.generate(prompts, decoded.params, every_token=every_token)


def event_stream(service: Service, fields: GenerationFields, running: Running, frames: AsyncIterator[bytes]) -> EventStream:
    """A reply that sends `frames` and stops `running` when it is over."""
    settings = service.settings
    interval = settings.sse_ping_interval if fields.sse_ping_interval is None else fields.sse_ping_interval
    close: Callable[[], Awaitable[None]] = running.aclose
    return EventStream(frames, close, ping_after=settings.sse_ping_after, ping_interval=interval)
