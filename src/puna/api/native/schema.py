"""Bodies of the native routes."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from puna.api.fields import MAX_PROBS, Body, Free, GenerationFields
from puna.api.numbers import Whole

_PROMPT = {
    "description": "a text, a list of token ids, a list that mixes both, or a list of those",
    "anyOf": [{"type": "string"}, {"type": "array"}, {"type": "object"}],
}


class CompletionRequest(GenerationFields):
    """Continue one or more prompts."""

    prompt: Annotated[Any, WithJsonSchema(_PROMPT)] = None
    logprobs: Annotated[Whole, Field(ge=0, le=MAX_PROBS)] | bool | None = Field(default=None, description="the same as `n_probs`")


class TokenizeRequest(Body):
    """Text, or a list of texts and token ids, to be made into token ids."""

    content: Free = None
    add_special: bool | None = None
    parse_special: bool | None = None
    with_pieces: bool | None = None


class DetokenizeRequest(Body):
    """Token ids to be made into text."""

    tokens: list[int] | None = None
