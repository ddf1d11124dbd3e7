"""The OpenAI routes."""

from __future__ import annotations

import time

from fastapi import APIRouter
from starlette.responses import Response

from puna.api.messages import decode_conversation
from puna.api.openai.decode import decode_chat, decode_completion, decode_prompts
from puna.api.openai.encode_chat import ChatEncoder
from puna.api.openai.encode_completion import CompletionEncoder
from puna.api.openai.models import models_object
from puna.api.openai.schema import ChatCompletionRequest, LegacyCompletionRequest
from puna.api.replies import Json
from puna.api.route import add_post, reply, start
from puna.errors import NotFound
from puna.service.preserved import preserving
from puna.service.service import Service

MODELS = (LegacyCompletionRequest, ChatCompletionRequest)


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
        running = await start(service, body, prompts.tokens, decoded)
        return await reply(service, body, decoded, running, encoder)

    async def create_chat_completion(body: ChatCompletionRequest) -> Response:
        """Answer a conversation."""
        decoded = decode_chat(service, body)
        # Tools that must not be called are not shown to the model, which might call them all the same.
        rendered = await service.chat.render(decode_conversation(body, tools=False))
        prompt = await service.chat.tokenize(rendered)
        encoder = ChatEncoder(
            body, decoded, model=service.model, tokenizer=preserving(service.tokenizer, decoded.params.preserved_tokens)
        )
        running = await start(service, body, [prompt], decoded)
        return await reply(service, body, decoded, running, encoder)

    add_post(router, service, ("/v1/completions",), LegacyCompletionRequest, create_completion)
    add_post(router, service, ("/v1/chat/completions", "/chat/completions"), ChatCompletionRequest, create_chat_completion)

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
