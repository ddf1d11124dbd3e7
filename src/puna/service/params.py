"""How a caller wants each of its prompts to be continued."""

from __future__ import annotations

import secrets

import msgspec

from puna.types import Constraint, Generation, Sampling

SEEDS = 1 << 32


class GenerationParams(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a generation but its prompt. Valid as it stands: whoever builds it has checked the ranges."""

    sampling: Sampling = Sampling()
    """Its seed is not used: see `seed`."""
    seed: int = -1
    """-1 for a random one."""
    n: int = 1
    """Answers to each prompt; the j-th one has the seed plus j."""
    max_tokens: int = -1
    stop: tuple[str, ...] = ()
    constraint: Constraint | None = None
    cache_prompt: bool = True
    id_slot: int = -1
    want_progress: bool = False


def plan(prompts: tuple[tuple[int, ...], ...], params: GenerationParams) -> list[Generation]:
    """One generation for every answer, the answers to one prompt side by side."""
    seed = params.seed if params.seed >= 0 else secrets.randbelow(SEEDS)
    samplings = [msgspec.structs.replace(params.sampling, seed=(seed + j) % SEEDS) for j in range(params.n)]
    return [
        Generation(
            prompt=prompt,
            sampling=sampling,
            max_tokens=params.max_tokens,
            stop=params.stop,
            constraint=params.constraint,
            cache_prompt=params.cache_prompt,
            id_slot=params.id_slot,
            want_progress=params.want_progress,
        )
        for prompt in prompts
        for sampling in samplings
    ]
