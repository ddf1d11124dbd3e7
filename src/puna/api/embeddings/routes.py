"""The routes that embed."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from puna.api.embeddings.decode import decode
from puna.api.embeddings.encode import native_reply, openai_reply
from puna.api.embeddings.schema import EmbeddingRequest
from puna.api.lora import decode_lora
from puna.api.replies import Json
from puna.api.route import add_post
from puna.errors import InvalidRequest
from puna.service.service import Service
from puna.service.vectors import embed, read_inputs, shape

MODELS = (EmbeddingRequest,)


def embeddings_router(service: Service) -> APIRouter:
    """OpenAI's route, and llama.cpp's under both of its names."""
    router = APIRouter(tags=["embeddings"])

    async def answer(body: EmbeddingRequest, *, native: bool) -> Response:
        facts = service.check_embeds()
        wish = decode(body, facts, service.settings.embd_normalize)
        if facts.pooling == "none" and not native:
            raise InvalidRequest(
                "with --pooling none every token has a vector, which this route's replies have no place for; "
                "ask /embeddings for them, or start the server with another pooling"
            )
        tokens, media = await read_inputs(
            service, wish.inputs, limit=facts.n_ctx_pooled, truncate=wish.truncate, param=wish.param
        )
        lora = decode_lora(body.lora, service.adapters, param="lora") if body.lora else service.adapters.current
        found = await embed(service, tokens, lora, media)
        rows = shape(found.rows, dimensions=wish.dimensions, norm=wish.norm)
        if native:
            return Json(native_reply(rows, found.counts, base64=wish.base64))
        return Json(openai_reply(rows, base64=wish.base64, model=service.model, n_tokens=found.n_tokens))

    async def create_embedding(body: EmbeddingRequest) -> Response:
        """Make texts into vectors. A body with `content` in place of `input` is answered in llama.cpp's shape."""
        return await answer(body, native=body.input is None and body.content is not None)

    async def embeddings(body: EmbeddingRequest) -> Response:
        """Make texts into vectors; without pooling, each token of a text into one."""
        return await answer(body, native=True)

    add_post(router, service, ("/v1/embeddings",), EmbeddingRequest, create_embedding)
    add_post(router, service, ("/embeddings", "/embedding"), EmbeddingRequest, embeddings)
    return router
