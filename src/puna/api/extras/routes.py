"""`/extras/tokenize`, `/extras/tokenize/count`, `/extras/detokenize`."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from puna.api.fields import Body
from puna.api.numbers import Whole
from puna.api.replies import Json
from puna.api.route import add_post
from puna.service.prompts import check_ids, tokenize_text
from puna.service.service import Service


class TokenizeInputRequest(Body):
    """A text to be made into token ids, with the tokens that the model wants at its ends."""

    model: str | None = None
    input: str


class DetokenizeTokensRequest(Body):
    """Token ids to be made into text."""

    model: str | None = None
    tokens: list[Whole] = Field(max_length=1_000_000)


MODELS = (TokenizeInputRequest, DetokenizeTokensRequest)


def extras_router(service: Service) -> APIRouter:
    """Routes that the clients of other servers know."""
    router = APIRouter(tags=["extras"])

    async def ids(body: TokenizeInputRequest) -> list[int]:
        return await tokenize_text(service.tokenizer, body.input, add_special=True, parse_special=True)

    async def tokenize_input(body: TokenizeInputRequest) -> Response:
        """Make text into token ids."""
        return Json({"tokens": await ids(body)})

    async def count_input(body: TokenizeInputRequest) -> Response:
        """Count a text's tokens."""
        return Json({"count": len(await ids(body))})

    async def detokenize_tokens(body: DetokenizeTokensRequest) -> Response:
        """Make token ids into text."""
        tokenizer = service.tokenizer
        check_ids(tokenizer, body.tokens, param="tokens")
        return Json({"text": await asyncio.to_thread(tokenizer.detokenize, body.tokens)})

    add_post(router, service, ("/extras/tokenize",), TokenizeInputRequest, tokenize_input)
    add_post(router, service, ("/extras/tokenize/count",), TokenizeInputRequest, count_input)
    add_post(router, service, ("/extras/detokenize",), DetokenizeTokensRequest, detokenize_tokens)
    return router
