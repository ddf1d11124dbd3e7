"""The Messages routes."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter
from starlette.responses import Response

from puna.api.anthropic.decode import decode_prompt, decode_turn
from puna.api.anthropic.encode import MessageEncoder
from puna.api.anthropic.schema import CountTokensRequest, MessagesRequest
from puna.api.errors import MESSAGES, error_frame
from puna.api.replies import EventStream, Json
from puna.api.route import add_post
from puna.service.chat_run import count_turn, prepare_turn, start_turn
from puna.service.naming import naming
from puna.service.service import Service

MODELS = (MessagesRequest, CountTokensRequest)


def anthropic_router(service: Service) -> APIRouter:
    """Routes that Anthropic's SDKs know."""
    router = APIRouter(tags=["anthropic"])

    async def create_message(body: MessagesRequest) -> Response:
        """Answer a conversation."""
        prepared = await prepare_turn(service, decode_turn(service, body))
        # How much was cached is part of the first event, before anything is generated.
        prepared = msgspec.structs.replace(prepared, params=msgspec.structs.replace(prepared.params, want_progress=True))
        run = await start_turn(service, prepared)
        hidden = body.thinking is not None and body.thinking.display == "omitted"
        encoder = MessageEncoder(run, model=body.model or service.model, show_thinking=not hidden)
        headers = {"request-id": encoder.id}
        if not body.stream:
            with naming(prepared.constraint_field):
                return Json(await encoder.whole(), headers=headers)
        settings = service.settings
        interval = settings.sse_ping_interval if body.sse_ping_interval is None else body.sse_ping_interval
        stream = EventStream(
            encoder.frames(),
            run.aclose,
            ping_after=settings.sse_ping_after,
            ping_interval=interval,
            encode_error=lambda error: error_frame(error, MESSAGES),
        )
        stream.headers.update(headers)
        return stream

    async def count_message_tokens(body: CountTokensRequest) -> Response:
        """Count a conversation's tokens."""
        return Json({"input_tokens": await count_turn(service, decode_prompt(service, body))})

    add_post(router, service, ("/v1/messages",), MessagesRequest, create_message)
    add_post(router, service, ("/v1/messages/count_tokens",), CountTokensRequest, count_message_tokens)
    return router
