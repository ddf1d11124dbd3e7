"""How a caller wants each of its prompts to be continued."""

from __future__ import annotations

import secrets

import msgspec

from puna.speculation import Speculation
from puna.types import Constraint, Generation, Media, Sampling, Thinking

SEEDS = 1 << 32


class GenerationParams(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a generation but its prompt. Valid as it stands: whoever builds it has checked the ranges."""

    sampling: Sampling = Sampling()
    """Its seed is not used: see `seed`."""
    seed: int = -1
    """-1 for a random one."""
    n: int = 1
    """Answers to each prompt; the j-th one has the seed plus j."""
    best_of: int = 1
    """Answers that are tried for each prompt: the best `n` of them are given. Fewer than `n` count as `n`."""
    max_tokens: int = -1
    stop: tuple[str, ...] = ()
    constraint: Constraint | None = None
    preserved_tokens: tuple[int, ...] = ()
    lora: tuple[tuple[int, float], ...] = ()
    thinking: Thinking | None = None
    cache_prompt: bool = True
    n_cache_reuse: int = 0
    id_slot: int = -1
    want_progress: bool = False
    prompt_probs: bool = False
    context_shift: bool = False
    n_keep: int = 0
    n_discard: int = 0
    speculation: Speculation = Speculation()
    deterministic: bool = False
    n_indent: int = 0
    t_max_predict_ms: int = 0

    @property
    def n_tried(self) -> int:
        """Generations for each prompt."""
        return max(self.n, self.best_of)


_SAME = (
    "want_progress",
    *("max_tokens", "stop", "constraint", "preserved_tokens", "lora", "thinking", "cache_prompt", "n_cache_reuse"),
    *("prompt_probs", "context_shift", "n_keep", "n_discard", "speculation", "deterministic", "n_indent", "t_max_predict_ms"),
)
"""Fields that every generation has as they are."""


def plan(
    prompts: tuple[tuple[int, ...], ...], params: GenerationParams, media: tuple[tuple[Media, ...], ...] = ()
) -> list[Generation]:
    """One generation for every answer that is tried, those to one prompt side by side. `media` is what each prompt has in it;
    empty where none has anything."""
    seed = params.seed if params.seed >= 0 else secrets.randbelow(SEEDS)
    sampling = params.sampling
    if params.n_tried > params.n:  # they are ranked by their tokens' probabilities
        sampling = msgspec.structs.replace(sampling, n_probs=max(1, sampling.n_probs))
    samplings = [msgspec.structs.replace(sampling, seed=(seed + j) % SEEDS) for j in range(params.n_tried)]
    same = {name: getattr(params, name) for name in _SAME}
    # the other answers run beside the first one: they must not wait for its slot
    slots = [params.id_slot] + [-1] * (params.n_tried - 1)
    return [
        Generation(prompt=prompt, media=own, sampling=one, id_slot=slot, **same)
        for prompt, own in zip(prompts, media or ((),) * len(prompts), strict=True)
        for one, slot in zip(samplings, slots, strict=True)
    ]
