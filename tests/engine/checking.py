"""Whether an answer is one that a model could have given."""

from __future__ import annotations

from puna.types import Sampling
from tests.engine.driver import Answer, Driver

NOISE = 0.5
"""By how much a greedy token's log-probability may stay behind the best: far more than rounding makes of tiny models, and far
less than what wrong memory makes of them."""


def assert_plausible(driver: Driver, prompt: tuple[int, ...], answer: Answer) -> None:
    """Each token of a greedy answer is among the best in a fresh evaluation of all that came before."""
    whole = (*prompt, *answer.tokens)
    wish = {"max_tokens": 0, "prompt_probs": True, "cache_prompt": False, "sampling": Sampling(temperature=0, n_probs=1)}
    scored = driver.ask(whole, **wish).prompt_probs
    assert len(scored) == len(whole) - 1
    for prob in scored[len(prompt) - 1 :]:
        assert prob.logprob > prob.top[0][1] - NOISE
