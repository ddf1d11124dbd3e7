"""Choosing for several sequences on threads: the same tokens as one after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import msgspec
import pytest

from puna.engine import sampling_pool
from puna.engine.sampling import Choice
from puna.engine.sampling_pool import SamplingPool
from puna.errors import InvalidRequest
from puna.llama.sampler import Candidates
from puna.types import Constraint, Sampling
from tests.engine.driver import Driver

CHAIN = Sampling(temperature=1, top_k=20, repeat_penalty=1.2, dry_multiplier=0.5, xtc_probability=0.2, n_probs=3)
WANTED = (
    (CHAIN, None),
    (CHAIN, None),
    (Sampling(temperature=0), None),
    (CHAIN, Constraint("gbnf", "root ::= [a-c]+")),
    (CHAIN, None),
)


@pytest.mark.parametrize("n_threads", [2, 3, 8])
def test_results_and_errors_come_in_order(n_threads: int) -> None:
    pool: SamplingPool[int] = SamplingPool(8, n_threads)
    used: set[int] = set()

    def job(number: int, candidates: Candidates) -> int:
        used.add(id(candidates))
        if number % 3 == 2:
            raise InvalidRequest(str(number))
        return number

    jobs: list[Callable[[Candidates], int]] = [partial(job, number) for number in range(7)]
    found = [str(one) if isinstance(one, InvalidRequest) else one for one in pool.run(jobs)]
    assert found == [0, 1, "2", 3, 4, "5", 6]
    assert len(used) == min(n_threads, 7)


def test_jobs_run_at_once() -> None:
    pool: SamplingPool[bool] = SamplingPool(8, 2)
    met = threading.Barrier(2)
    assert pool.run([lambda _: met.wait(20) >= 0] * 2) == [True, True]


def test_when_it_pays() -> None:
    assert SamplingPool[int](262_144, 2).pays(2)
    assert not SamplingPool[int](262_144, 1).pays(2)
    assert not SamplingPool[int](262_144, 2).pays(1)
    assert not SamplingPool[int](500, 2).pays(16)


def test_the_same_tokens(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also beside greedy and constrained sequences."""

    def answers(n_threads: int) -> list[object]:
        driver = Driver(tiny_llama, n_threads=1, n_threads_batch=n_threads, n_slots=len(WANTED))
        asked = []
        for i, (sampling, rule) in enumerate(WANTED):
            own = msgspec.structs.replace(sampling, seed=i)
            asked.append(driver.submit(tuple(range(300 + 9 * i, 320 + 9 * i)), sampling=own, max_tokens=12, constraint=rule))
        driver.run()
        return [(one.tokens, one.probs, one.end) for one in asked]

    alone = answers(1)
    monkeypatch.setattr(sampling_pool, "WORTH", 1)
    sizes: list[int] = []
    run = SamplingPool.run

    def counted(self: SamplingPool[Choice], jobs: list[Callable[[Candidates], Choice]]) -> object:
        sizes.append(len(jobs))
        return run(self, jobs)

    monkeypatch.setattr(SamplingPool, "run", counted)
    assert answers(2) == alone
    assert max(sizes) == 3
