"""What the routes of all dialects have in common: read, validate, work while the client is there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
from fastapi import APIRouter
from pydantic import BaseModel, RootModel
from starlette.requests import Request
from starlette.responses import Response

from puna.api import body
from puna.api.decode import Decoded
from puna.api.disconnect import unless_disconnected
from puna.api.fields import GenerationFields
from puna.api.openapi import request_body
from puna.api.replies import EventStream, Json
from puna.service.answers import Answer, collect
from puna.service.chat_answers import ChatAnswer
from puna.service.chat_run import ChatRun
from puna.service.naming import naming
from puna.service.ranking import choose_best
from puna.service.running import Running
from puna.service.service import Service
from puna.service.turns import Turn
from puna.service.written import ReadPrompt

Model = TypeVar("Model", bound=BaseModel)
Handler = Callable[[Model], Coroutine[Any, Any, Response]]


def add_post(router: APIRouter, service: Service, paths: tuple[str, ...], model: type[Model], handler: Handler[Model]) -> None:
    """Let `handler` answer POST requests to all `paths`, with the validated body; it is cancelled if the client leaves."""

    async def endpoint(request: Request) -> Response:
        raw = await body.read(request, service.settings.max_body)
        parsed = await body.parse_any(raw, as_list=issubclass(model, RootModel))
        fields = body.validate(model, parsed)
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


class Encoder(Protocol):
    """Makes a dialect's replies."""

    def frames(self, running: Running) -> AsyncIterator[bytes]:
        """Server-sent events."""
        ...

    def whole(self, answers: Sequence[Answer]) -> bytes:
        """The reply to a request that does not stream."""
        ...


async def start(
    service: Service,
    fields: GenerationFields,
    prompts: Sequence[ReadPrompt],
    decoded: Decoded,
    *,
    turn: Turn | None = None,
) -> Running:
    """Prepare the constraint and admit the request: what is wrong with either is known before a reply begins."""
    params = decoded.params
    if params.constraint is not None:
        with naming(decoded.constraint_field):
            prepared = await service.prepare_constraint(params.constraint, params.preserved_tokens)
        params = msgspec.structs.replace(params, constraint=prepared)
    return await service.generate(
        [prompt.tokens for prompt in prompts],
        params,
        every_token=wants_each(fields, decoded),
        turn=turn,
        media=[prompt.media for prompt in prompts],
    )


async def reply(service: Service, fields: GenerationFields, decoded: Decoded, running: Running, encoder: Encoder) -> Response:
    """What `running` brings, as a stream or whole, as the request wants it."""
    if fields.stream:
        return event_stream(service, fields, running.aclose, encoder.frames(running))
    with naming(decoded.constraint_field):
        return Json(encoder.whole(choose_best(await collect(running), decoded.params)))


class ChatEncoder(Protocol):
    """Makes a dialect's replies to a chat turn."""

    def frames(self, run: ChatRun) -> AsyncIterator[bytes]:
        """Server-sent events."""
        ...

    def whole(self, answers: Sequence[ChatAnswer]) -> bytes:
        """The reply to a request that does not stream."""
        ...


def wants_each(fields: GenerationFields, decoded: Decoded) -> bool:
    """Whether a stream has to show every token when it comes, even while its text is held back."""
    asked = decoded.logprobs.wanted or fields.return_tokens is True or fields.timings_per_token is True
    return fields.stream is True and asked


async def chat_reply(service: Service, fields: GenerationFields, run: ChatRun, encoder: ChatEncoder) -> Response:
    """What `run` brings, as a stream or whole, as the request wants it."""
    if fields.stream:
        return event_stream(service, fields, run.aclose, encoder.frames(run))
    with naming(run.prepared.constraint_field):
        return Json(encoder.whole(await run.collect()))


def event_stream(
    service: Service, fields: GenerationFields, close: Callable[[], Awaitable[None]], frames: AsyncIterator[bytes]
) -> EventStream:
    """A reply that sends `frames`, and calls `close` when it is over."""
    settings = service.settings
    interval = settings.sse_ping_interval if fields.sse_ping_interval is None else fields.sse_ping_interval
    return EventStream(frames, close, ping_after=settings.sse_ping_after, ping_interval=interval)
