"""Answers longer than the context, probabilities of prompts, and shapes that depend on nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from puna.llama.batch import Batch
from puna.types import Sampling
from tests.engine.driver import Driver

ON = Sampling(temperature=0, ignore_eos=True)


@pytest.fixture(scope="module", params=["split", "unified"])
def driver(request: pytest.FixtureRequest, tiny_llama: Path) -> Iterator[Driver]:
    made = Driver(tiny_llama, layout=request.param, n_ctx=256)
    yield made
    assert made.warnings == []


def test_a_shifted_answer_goes_on_past_the_context(driver: Driver) -> None:
    prompt = driver.tokens("a prompt that is kept")
    answer = driver.ask(prompt, max_tokens=600, sampling=ON, context_shift=True, n_keep=-1)
    assert (len(answer.tokens), answer.end, answer.truncated) == (600, "limit", True)
    short = driver.ask(prompt, max_tokens=20, sampling=ON, context_shift=True)
    assert not short.truncated
    assert short.tokens == answer.tokens[:20]


def test_without_a_shift_the_context_is_the_end(driver: Driver) -> None:
    answer = driver.ask("x", sampling=ON)
    assert (answer.end, answer.truncated) == ("limit", False)


def test_shifted_sequences_leave_nothing_in_the_cache(driver: Driver) -> None:
    prompt = driver.tokens("a prompt to be shifted away")
    answer = driver.ask(prompt, max_tokens=400, sampling=ON, context_shift=True)
    follow = (*prompt, *answer.tokens[:50], 9)
    assert driver.ask(follow, max_tokens=1).cached <= len(prompt)


def test_many_shift_at_once_beside_others(driver: Driver) -> None:
    shifting = [driver.submit(f"shift {i}", max_tokens=300, sampling=ON, context_shift=True, n_discard=30) for i in range(3)]
    other = driver.submit("other", force="undisturbed text")
    driver.run()
    assert [(len(answer.tokens), answer.truncated) for answer in shifting] == [(300, True)] * 3
    assert driver.text(other) == "undisturbed text"


def test_a_shifted_answer_can_be_resumed(driver: Driver) -> None:
    answer = driver.ask("go", max_tokens=500, sampling=ON, context_shift=True)
    rest = driver.ask("go", max_tokens=500, sampling=ON, context_shift=True, produced=tuple(answer.tokens[:450]))
    assert (len(rest.tokens), rest.end, rest.truncated) == (50, "limit", True)


def test_a_prompts_own_probabilities(driver: Driver) -> None:
    prompt = tuple(5 + (7 * i) % 300 for i in range(150))
    driver.ask(prompt, max_tokens=1)  # so that there is a cache that must not be used
    answer = driver.ask(prompt, max_tokens=2, prompt_probs=True, sampling=Sampling(temperature=0, n_probs=3, ignore_eos=True))
    assert [prob.id for prob in answer.prompt_probs] == list(prompt[1:])
    assert {len(prob.top) for prob in answer.prompt_probs} == {3}

    context = driver.engine._arena._context
    batch = Batch(256)
    batch.add(prompt, 0, 0, n_logits=len(prompt))
    context.decode(batch)
    for position in (0, 63, 64, 100, 148):
        logits = context.logits(position).astype(np.float64)
        expected = logits[prompt[position + 1]] - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
        assert answer.prompt_probs[position].logprob == pytest.approx(expected, abs=0.05)
    context.drop(0)


def test_prompt_probabilities_alone(driver: Driver) -> None:
    prompt = tuple(5 + (7 * i) % 300 for i in range(100))
    answer = driver.ask(prompt, max_tokens=0, prompt_probs=True)
    assert [prob.id for prob in answer.prompt_probs] == list(prompt[1:])
    assert {prob.top for prob in answer.prompt_probs} == {()}


def test_a_preempted_prompt_is_scored_once(driver: Driver) -> None:
    prompt = tuple(5 + (7 * i) % 300 for i in range(150))
    answer = driver.submit(prompt, max_tokens=1, prompt_probs=True, sampling=ON)
    driver.step()
    assert 0 < len(answer.prompt_probs) < 149
    driver.engine._preempt(driver.engine._scheduler.running[0])
    driver.run()
    assert [prob.id for prob in answer.prompt_probs] == list(prompt[1:])


def test_deterministic_requests_are_the_same_under_any_load_and_cache(tiny_llama: Path) -> None:
    hot = Sampling(temperature=1.5, top_k=0, top_p=1, min_p=0, seed=3, n_probs=1, ignore_eos=True)
    prompt = tuple(5 + (11 * i) % 300 for i in range(150))

    def exact(driver: Driver) -> list[tuple[int, float]]:
        answer = driver.submit(prompt, max_tokens=30, sampling=hot, deterministic=True)
        driver.run()
        return [(prob.id, prob.logprob) for prob in answer.probs]

    alone = exact(Driver(tiny_llama))
    busy = Driver(tiny_llama)
    busy.ask((*prompt[:100], 9), max_tokens=5)
    others = [busy.submit((*prompt[: 20 * i], 7), max_tokens=40, sampling=ON) for i in range(1, 4)]
    busy.step()
    assert exact(busy) == alone
    assert [len(other.tokens) for other in others] == [40] * 3
    two = [busy.submit(prompt, max_tokens=30, sampling=hot, deterministic=True) for _ in range(2)]
    busy.run()
    assert [[(prob.id, prob.logprob) for prob in one.probs] for one in two] == [alone] * 2


def test_a_resumed_deterministic_request_is_the_same(tiny_llama: Path) -> None:
    driver = Driver(tiny_llama)
    whole = driver.ask("once", max_tokens=20, sampling=ON, deterministic=True).tokens
    assert driver.ask("once", max_tokens=20, sampling=ON, deterministic=True, produced=tuple(whole[:7])).tokens == whole[7:]
