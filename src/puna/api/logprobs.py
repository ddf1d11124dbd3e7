"""Whether a request wants its tokens' probabilities: asked for under three names, and with three meanings of nought."""

from __future__ import annotations

import msgspec

from puna.api.fields import GenerationFields
from puna.errors import InvalidRequest


class Logprobs(msgspec.Struct, frozen=True):
    """Whether each token's probability is wanted, and of how many rivals."""

    wanted: bool = False
    n_top: int = 0

    @property
    def n_probs(self) -> int:
        """What the engine is asked for: it reports nothing at all for 0."""
        return max(1, self.n_top) if self.wanted else 0


def native_logprobs(fields: GenerationFields) -> Logprobs:
    """As llama.cpp's own routes read it: a number of rivals, 0 for no probabilities; `true` is 1."""
    asked = legacy_logprobs(fields)
    if fields.n_probs is None and fields.logprobs is True and fields.top_logprobs is None:
        return Logprobs(True, 1)
    return asked if asked.n_top else Logprobs()


def legacy_logprobs(fields: GenerationFields) -> Logprobs:
    """As OpenAI's older route reads it: `logprobs` of 0 is the chosen token's probability alone."""
    if fields.n_probs is not None:
        return Logprobs(fields.n_probs > 0, fields.n_probs)
    if fields.logprobs is False or (fields.logprobs is None and fields.top_logprobs is None):
        return Logprobs()
    if fields.top_logprobs is not None:
        return Logprobs(True, fields.top_logprobs)
    return Logprobs(True, 0 if fields.logprobs is True else int(fields.logprobs or 0))


def chat_logprobs(fields: GenerationFields) -> Logprobs:
    """As OpenAI's chat reads it: `logprobs` says whether, `top_logprobs` how many; the latter alone is an `InvalidRequest`."""
    if fields.n_probs is None and not fields.logprobs:
        if fields.top_logprobs:
            raise InvalidRequest("Field 'top_logprobs': needs 'logprobs' to be true", param="top_logprobs")
        return Logprobs()
    return legacy_logprobs(fields)
