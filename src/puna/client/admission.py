"""Whether a generation may come in: pure checks, so that a refusal is known before an answer begins."""

from __future__ import annotations

import math
from collections.abc import Sequence

from puna.errors import ContextExceeded, InputTooLong, InvalidRequest
from puna.types import Generation, ModelFacts

LONGEST_WAIT = 60
"""Seconds that nobody is told to stay away for longer."""


def check(generation: Generation, facts: ModelFacts) -> None:
    """Raise InvalidRequest or ContextExceeded when the model can never do this."""
    prompt = generation.prompt
    if not prompt:
        raise InvalidRequest("the prompt has no tokens", param="prompt")
    if min(prompt) < 0 or max(prompt) >= facts.n_vocab:
        raise InvalidRequest(f"the prompt has a token id outside the vocabulary (0 to {facts.n_vocab - 1})", param="prompt")
    check_adapters(generation.lora, facts)
    room = facts.n_ctx - len(prompt)
    # A prompt that is only read needs no room for an answer.
    if room < 0 or (room == 0 and generation.max_tokens != 0):
        raise ContextExceeded(len(prompt), facts.n_ctx)


def check_adapters(lora: Sequence[tuple[int, float]], facts: ModelFacts) -> None:
    """Raise InvalidRequest for an adapter that is not there."""
    if any(not 0 <= id < len(facts.adapters) for id, _ in lora):
        raise InvalidRequest(f"the request names an adapter that is not loaded; there are {len(facts.adapters)}", param="lora")


def check_inputs(inputs: Sequence[Sequence[int]], lora: Sequence[tuple[int, float]], facts: ModelFacts) -> None:
    """Raise InvalidRequest or InputTooLong, with the number of the input at fault, when the model can never do this."""
    check_adapters(lora, facts)
    for index, tokens in enumerate(inputs):
        if not tokens:
            raise InvalidRequest(f"input {index} has no tokens", param="input")
        if min(tokens) < 0 or max(tokens) >= facts.n_vocab:
            raise InvalidRequest(f"input {index} has a token id outside the vocabulary (0 to {facts.n_vocab - 1})", param="input")
        if len(tokens) > facts.n_ctx_pooled:
            raise InputTooLong(index, len(tokens), facts.n_ctx_pooled, param="input")


def retry_after(mean: float, n_slots: int) -> int:
    """Return the whole seconds until a place is free, if answers take `mean` seconds each."""
    return min(LONGEST_WAIT, max(1, math.ceil(mean / max(1, n_slots))))
