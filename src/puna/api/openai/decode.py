"""OpenAI requests made into neutral values."""

from __future__ import annotations

import msgspec

from puna.api.decode import Decoded, decode_generation
from puna.api.openai.schema import ChatCompletionRequest, LegacyCompletionRequest
from puna.api.unsupported import refusal
from puna.errors import InvalidRequest
from puna.service.prompts import Prompt, split_prompts
from puna.service.service import Service


class Logprobs(msgspec.Struct, frozen=True):
    """Whether each token's probability is wanted, and of how many rivals."""

    wanted: bool = False
    n_top: int = 0

    @property
    def n_probs(self) -> int:
        """What the engine is asked for: it reports nothing at all for 0."""
        return max(1, self.n_top) if self.wanted else 0


def decode_prompts(body: LegacyCompletionRequest) -> list[Prompt]:
    """The prompts as they were written."""
    if body.prompt is None:
        raise InvalidRequest("Field 'prompt': Field required", param="prompt")
    return split_prompts(body.prompt)


def decode_completion(service: Service, body: LegacyCompletionRequest) -> tuple[Decoded, Logprobs]:
    """How the prompts of `/v1/completions` are to be continued."""
    logprobs = _legacy_logprobs(body)
    if body.suffix:
        raise refusal("suffix", "text after the completion is not supported")
    if body.echo and logprobs.wanted:
        raise refusal("echo", "probabilities of the prompt's tokens are not supported; leave 'logprobs' out")
    return decode_generation(body, service, bias_texts=False, n_probs=logprobs.n_probs), logprobs


def _legacy_logprobs(body: LegacyCompletionRequest) -> Logprobs:
    if body.n_probs:
        return Logprobs(True, body.n_probs)
    if body.logprobs is None or body.logprobs is False:
        return Logprobs()
    return Logprobs(True, 0 if body.logprobs is True else body.logprobs)


def decode_chat(service: Service, body: ChatCompletionRequest) -> tuple[Decoded, Logprobs]:
    """How the conversation of `/v1/chat/completions` is to be answered."""
    _refuse_unsupported(body)
    logprobs = _chat_logprobs(body)
    return decode_generation(body, service, bias_texts=False, n_probs=logprobs.n_probs), logprobs


def _chat_logprobs(body: ChatCompletionRequest) -> Logprobs:
    asked = body.logprobs
    if body.n_probs:
        return Logprobs(True, body.n_probs)
    if not asked:
        if body.top_logprobs:
            raise InvalidRequest("Field 'top_logprobs': needs 'logprobs' to be true", param="top_logprobs")
        return Logprobs()
    if body.top_logprobs is not None:
        return Logprobs(True, body.top_logprobs)
    return Logprobs(True, 0 if asked is True else asked)


def _refuse_unsupported(body: ChatCompletionRequest) -> None:
    if body.tools and body.tool_choice != "none":
        raise refusal("tools", "calling tools is not supported; leave them out, or set 'tool_choice' to \"none\"")
    if body.functions:
        raise refusal("functions", "calling functions is not supported")
    if body.reasoning_budget_tokens is not None and body.reasoning_budget_tokens >= 0:
        raise refusal("reasoning_budget_tokens", "a limit on reasoning is not supported")
