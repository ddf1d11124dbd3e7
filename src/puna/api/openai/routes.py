"""The OpenAI routes."""

from __future__ import annotations

import time

from fastapi import APIRouter
from starlette.responses import Response

from puna.api.openai.decode import decode_chat, decode_completion, decode_prompts
from puna.api.openai.encode_chat import ChatEncoder
from puna.api.openai.encode_completion import CompletionEncoder
from puna.api.openai.models import models_object
from puna.api.openai.schema import ChatCompletionRequest, ControlRequest, LegacyCompletionRequest
from puna.api.replies import Json
from puna.api.route import add_post, chat_reply, reply, start, wants_each
from puna.errors import NotFound
from puna.service.chat_run import count_turn, prepare_turn, start_turn
from puna.service.preserved import preserving
from puna.service.service import Service

MODELS = (LegacyCompletionRequest, ChatCompletionRequest, ControlRequest)


def openai_router(service: Service) -> APIRouter:
    """Routes that OpenAI's SDKs know."""
    router = APIRouter(tags=["openai"])
    created = int(time.time())

    async def create_completion(body: LegacyCompletionRequest) -> Response:
        """Continue one or more prompts."""
        decoded = decode_completion(service, body)
        prompts = await decode_prompts(service, body)
        encoder = CompletionEncoder(
            body, decoded, prompts, model=service.model, tokenizer=preserving(service.tokenizer, decoded.params.preserved_tokens)
        )
        running = await start(service, body, prompts.read, decoded)
        return await reply(service, body, decoded, running, encoder)

    async def create_chat_completion(body: ChatCompletionRequest) -> Response:
        """Answer a conversation."""
        turn, decoded = decode_chat(service, body)
        prepared = await prepare_turn(service, turn)
        run = await start_turn(service, prepared, every_token=wants_each(body, decoded))
        encoder = ChatEncoder(body, decoded, run, model=service.model)
        service.controls.add(encoder.id, run)
        return await chat_reply(service, body, run, encoder)

    async def count_chat_tokens(body: ChatCompletionRequest) -> Response:
        """Count the tokens that a conversation's prompt has. Nothing is generated; text alone needs no slot."""
        turn, _ = decode_chat(service, body)
        n_tokens = await count_turn(service, turn)
        return Json({"object": "chat.completion.input_tokens", "input_tokens": n_tokens})

    async def control_chat_completion(body: ControlRequest) -> Response:
        """End the reasoning of an answer while it is made, so that the model goes on to say what it has found."""
        running = service.controls.find(body.id)
        if running is None:
            return Json({"success": False, "message": "no answer with this id is being made"})
        if not running.end_reasoning():
            return Json({"success": False, "message": "the reasoning of this answer cannot be ended"})
        return Json({"success": True})

    add_post(router, service, ("/v1/completions",), LegacyCompletionRequest, create_completion)
    add_post(router, service, ("/v1/chat/completions", "/chat/completions"), ChatCompletionRequest, create_chat_completion)
    counting = ("/v1/chat/completions/input_tokens", "/chat/completions/input_tokens")
    add_post(router, service, counting, ChatCompletionRequest, count_chat_tokens)
    add_post(router, service, ("/v1/chat/completions/control",), ControlRequest, control_chat_completion)

    async def list_models() -> Response:
        """The model that is served."""
        return Json(models_object(service, created=created))

    for path in ("/v1/models", "/models"):
        router.add_api_route(path, list_models, methods=["GET"], response_model=None)

    @router.get("/v1/models/{name:path}", response_model=None)
    async def retrieve_model(name: str) -> Response:
        """The model that is served, by its name."""
        if name != service.model:
            raise NotFound(f"no model is called {name!r} here; this server has {service.model!r}")
        return Json(models_object(service, created=created)["data"][0])

    return router
