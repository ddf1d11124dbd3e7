"""The route that makes speech into text."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from puna.api import body as bodies
from puna.api.disconnect import unless_disconnected
from puna.api.openapi import REFERENCE
from puna.api.replies import EventStream
from puna.api.transcription.decode import decode_turn, read_request
from puna.api.transcription.encode import TranscriptEncoder
from puna.api.transcription.schema import TranscriptionRequest
from puna.errors import NotSupported
from puna.media import MediaFacts
from puna.service.chat_run import prepare_turn, start_turn
from puna.service.service import Service

MODELS = (TranscriptionRequest,)

PATHS = ("/v1/audio/transcriptions", "/audio/transcriptions")


def transcription_router(service: Service) -> APIRouter:
    """OpenAI's route."""
    router = APIRouter(tags=["transcription"])

    async def create_transcription(raw: bytes, content_type: str) -> Response:
        facts = check_hears(service)
        read = partial(read_request, raw, content_type)
        body, sound = read() if len(raw) < bodies.LARGE else await asyncio.to_thread(read)
        run = await start_turn(service, await prepare_turn(service, decode_turn(service, body, sound)))
        encoder = TranscriptEncoder(body, run, rate=facts.audio_rate)
        if not body.stream:
            return await encoder.whole()
        settings = service.settings
        return EventStream(
            encoder.frames(), run.aclose, ping_after=settings.sse_ping_after, ping_interval=settings.sse_ping_interval
        )

    async def endpoint(request: Request) -> Response:
        """Write down what is said in a sound, which comes as the `file` of a form or as `input_audio` of a JSON body."""
        raw = await bodies.read(request, service.settings.max_body)
        content_type = request.headers.get("content-type", "")
        return await unless_disconnected(request.receive, create_transcription(raw, content_type))

    for path in PATHS:
        router.add_api_route(
            path,
            endpoint,
            methods=["POST"],
            name="create_transcription",
            summary="Create transcription",
            response_model=None,
            openapi_extra=_request_body(),
        )
    return router


def check_hears(service: Service) -> MediaFacts:
    """What is known of the model's projector. Raises `NotSupported` where it takes no sound."""
    service.check_ready()
    facts = service.facts.media
    if facts is None or not facts.audio:
        raise NotSupported("this model does not take sound; a model with a projector for it is needed (--mmproj)")
    return facts


def _request_body() -> dict[str, Any]:
    """The body in the OpenAPI document, in both forms."""
    reference = {"$ref": REFERENCE.format(model=TranscriptionRequest.__name__)}
    file = {"type": "object", "properties": {"file": {"type": "string", "format": "binary"}}, "required": ["file"]}
    content = {"multipart/form-data": {"schema": {"allOf": [file, reference]}}, "application/json": {"schema": reference}}
    return {"requestBody": {"required": True, "content": content}}
