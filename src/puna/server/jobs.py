"""Which routes are about a model, and what they want of it. Pure."""

from __future__ import annotations

import re

from puna.models.catalogue import Job

_POST: dict[str, Job] = {
    **dict.fromkeys(["/completion", "/completions", "/v1/completions"], "text"),
    **dict.fromkeys(["/chat/completions", "/v1/chat/completions", "/v1/chat/completions/control"], "text"),
    **dict.fromkeys(["/v1/chat/completions/input_tokens", "/v1/responses/input_tokens"], "text"),
    **dict.fromkeys(["/chat/completions/input_tokens", "/responses/input_tokens"], "text"),
    **dict.fromkeys(["/responses", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens"], "text"),
    "/apply-template": "text",
    **dict.fromkeys(["/audio/transcriptions", "/v1/audio/transcriptions"], "speech"),
    "/infill": "infill",
    **dict.fromkeys(["/embedding", "/embeddings", "/v1/embeddings"], "embedding"),
    **dict.fromkeys(["/rerank", "/reranking", "/v1/rerank", "/v1/reranking", "/v2/rerank", "/v1/v2/rerank"], "rerank"),
    **dict.fromkeys(["/tokenize", "/detokenize", "/lora-adapters"], "tokens"),
    **dict.fromkeys(["/extras/tokenize", "/extras/tokenize/count", "/extras/detokenize"], "tokens"),
}

_ABOUT_ONE = re.compile(r"/(props|slots|slots/\d+|lora-adapters)")


def job_of(method: str, path: str) -> Job | None:
    """What a request wants of a model; None for what is about none."""
    if method == "POST" and path in _POST:
        return _POST[path]
    if _ABOUT_ONE.fullmatch(path):
        return "tokens"
    return None


def may_load(method: str, path: str) -> bool:
    """Whether a request is reason enough to load a model: looking at one is not."""
    return method == "POST" and not path.startswith("/slots")
