"""Native requests made into neutral values."""

from __future__ import annotations

from puna.api.decode import Decoded, decode_generation
from puna.api.native.schema import CompletionRequest
from puna.errors import InvalidRequest
from puna.service.prompts import split_prompts, tokenize_prompt
from puna.service.service import Service


async def decode_prompts(service: Service, body: CompletionRequest) -> list[tuple[int, ...]]:
    """Token ids of every prompt."""
    if body.prompt is None:
        raise InvalidRequest("Field 'prompt': Field required", param="prompt")
    prompts = split_prompts(body.prompt)
    many = len(prompts) > 1
    return [
        await tokenize_prompt(service.tokenizer, prompt, param=f"prompt.{index}" if many else "prompt")
        for index, prompt in enumerate(prompts)
    ]


def decode_completion(service: Service, body: CompletionRequest) -> Decoded:
    """How the prompts are to be continued."""
    n_probs = body.n_probs
    if n_probs is None and body.logprobs is not None:
        n_probs = int(body.logprobs)
    return decode_generation(body, service, n_probs=n_probs)
