"""The routes that rank."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from puna.api.lora import decode_lora
from puna.api.replies import Json
from puna.api.rerank.decode import decode
from puna.api.rerank.encode import bare_reply, whole_reply
from puna.api.rerank.schema import RerankRequest
from puna.api.route import add_post
from puna.service.rerank import rank
from puna.service.service import Service

MODELS = (RerankRequest,)

FIRST = ("/rerank", "/reranking", "/v1/rerank", "/v1/reranking")
SECOND = ("/v2/rerank", "/v1/v2/rerank")
"""Cohere's newer route, also below the prefix that some clients put before every path."""


def rerank_router(service: Service) -> APIRouter:
    """All names of the one route."""
    router = APIRouter(tags=["rerank"])

    async def answer(body: RerankRequest, version: str) -> Response:
        service.check_ranks()
        wish = decode(body)
        ranking = await rank(
            service,
            wish.query,
            wish.documents,
            lora=decode_lora(body.lora, service.adapters, param="lora") if body.lora else None,
            truncate=wish.truncate,
            most_tokens=wish.most_tokens,
            param=wish.param,
        )
        if wish.bare:
            return Json(bare_reply(wish, ranking))
        return Json(whole_reply(wish, ranking, model=service.model, version=version))

    async def rerank(body: RerankRequest) -> Response:
        """Rank documents by how well they answer a query, the best first."""
        return await answer(body, "1")

    async def rerank_v2(body: RerankRequest) -> Response:
        """The same under the path of Cohere's newer clients."""
        return await answer(body, "2")

    add_post(router, service, FIRST, RerankRequest, rerank)
    add_post(router, service, SECOND, RerankRequest, rerank_v2)
    return router
