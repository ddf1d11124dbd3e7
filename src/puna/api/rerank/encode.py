"""Rankings as they appear in replies."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec

from puna.api.rerank.decode import Wish
from puna.service.rerank import Ranked, Ranking


def whole_reply(wish: Wish, ranking: Ranking, *, model: str, version: str) -> bytes:
    """One object with all that Cohere, Jina and llama.cpp have in theirs. `version` is that of Cohere's API."""
    usage = {"prompt_tokens": ranking.n_tokens, "total_tokens": ranking.n_tokens}
    return msgspec.json.encode(
        {
            "id": f"rerank-{secrets.token_hex(12)}",
            "object": "list",
            "model": model,
            "results": [_result(wish, one) for one in ranking.documents[: wish.most]],
            "usage": usage,
            "meta": {"api_version": {"version": version}, "billed_units": {"search_units": 1}},
        }
    )


def _result(wish: Wish, one: Ranked) -> dict[str, Any]:
    result: dict[str, Any] = {"index": one.index, "relevance_score": one.raw if wish.raw else one.score}
    if wish.with_documents:
        given = wish.given[one.index]
        result["document"] = given if isinstance(given, dict) else {"text": given}
    return result


def bare_reply(wish: Wish, ranking: Ranking) -> bytes:
    """text-embeddings-inference's list."""
    results: list[dict[str, Any]] = []
    for one in ranking.documents[: wish.most]:
        result: dict[str, Any] = {"index": one.index, "score": one.raw if wish.raw else one.score}
        if wish.with_documents:
            result["text"] = wish.documents[one.index]
        results.append(result)
    return msgspec.json.encode(results)
