"""Token probabilities as chat clients and llama.cpp's own clients read them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from puna.service.ports import Tokenizer
from puna.types import TokenProb

LOWEST = -3.4028234663852886e38
"""Stands for the logarithm of zero, which JSON cannot say."""


def finite(value: float) -> float:
    """The value itself where JSON can say it."""
    if math.isfinite(value):
        return value
    return 0.0 if value > 0 else LOWEST


def token_entry(tokenizer: Tokenizer, token: int, value: float, *, post: bool) -> dict[str, Any]:
    """One token with its probability (`post`) or the logarithm of it. Its text may be cut; its bytes are exact."""
    piece = tokenizer.piece(token)
    return {
        "id": token,
        "token": piece.decode("utf-8", "replace"),
        "bytes": list(piece),
        "prob" if post else "logprob": finite(value),
    }


def probs_list(tokenizer: Tokenizer, probs: Iterable[TokenProb], *, n_top: int, post: bool) -> list[dict[str, Any]]:
    """One entry for each token produced, with at most `n_top` of its rivals."""
    return [
        {
            **token_entry(tokenizer, prob.id, prob.logprob, post=post),
            "top_probs" if post else "top_logprobs": [
                token_entry(tokenizer, token, value, post=post) for token, value in prob.top[:n_top]
            ],
        }
        for prob in probs
    ]
