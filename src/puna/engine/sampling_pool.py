"""Choosing the next tokens of several sequences at once, on threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from puna.errors import InvalidRequest
from puna.llama.sampler import Candidates

T = TypeVar("T")

WORTH = 2**18
"""Candidates to go through in all from which threads are worth waking: some ten microseconds against a millisecond."""

MOST_THREADS = 8
"""Going through candidates is bound by memory; more threads than this bring nothing."""


class SamplingPool(Generic[T]):
    """Runs jobs, each of which needs a candidate array of its own, on several threads.

    numpy and the C samplers let go of the interpreter while they go through the candidates, which is where the time goes
    with large vocabularies. The engine's own threads sleep meanwhile.
    """

    def __init__(self, n_vocab: int, n_threads: int) -> None:
        self._n_vocab = n_vocab
        self._n_threads = min(n_threads, MOST_THREADS)
        self._candidates: list[Candidates] = []
        self._pool: ThreadPoolExecutor | None = None

    def pays(self, n_jobs: int) -> bool:
        """Whether so many jobs are done sooner here than one after the other."""
        return self._n_threads > 1 and n_jobs > 1 and n_jobs * self._n_vocab >= WORTH

    def run(self, jobs: Sequence[Callable[[Candidates], T]]) -> list[T | InvalidRequest | ValueError]:
        """What each job returns, or the error of a request that it raises, in order."""
        n_threads = min(self._n_threads, len(jobs))
        while len(self._candidates) < n_threads:
            self._candidates.append(Candidates(self._n_vocab))
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._n_threads - 1, "sampling")
        others = [self._pool.submit(_run, jobs[first::n_threads], self._candidates[first]) for first in range(1, n_threads)]
        shares = [_run(jobs[::n_threads], self._candidates[0]), *(other.result() for other in others)]
        return [shares[at % n_threads][at // n_threads] for at in range(len(jobs))]


def _run(jobs: Sequence[Callable[[Candidates], T]], candidates: Candidates) -> list[T | InvalidRequest | ValueError]:
    results: list[T | InvalidRequest | ValueError] = []
    for job in jobs:
        try:
            results.append(job(candidates))
        except (InvalidRequest, ValueError) as error:
            results.append(error)
    return results
