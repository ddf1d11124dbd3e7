"""Which inputs are computed together. Pure bookkeeping: no clock, no memory, no model."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from puna.engine.media.runs import NO_RUNS, Runs
from puna.ipc.frames import Embed

TOKEN = 4
"""Bytes of a token id in a frame."""


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a request."""

    request: int
    index: int
    tokens: bytes
    lora: tuple[tuple[int, float], ...] = ()
    """Adapters that apply."""
    runs: Runs = NO_RUNS
    """Where vectors of pictures and sounds stand among the tokens; such an input is computed by itself."""
    alone: bool = False
    """Whether it must have a batch of its own: the one it was part of failed, and nobody knows because of whom."""

    @property
    def n_tokens(self) -> int:
        return len(self.tokens) // TOKEN


class PoolingQueue:
    """Requests in order of arrival. Batches take an input of each in turn, so that a request with thousands of inputs
    does not keep one with a single input waiting."""

    def __init__(self) -> None:
        self._jobs: dict[int, deque[Input]] = {}
        """What is left of each request, never nothing."""
        self._turns: deque[int] = deque()

    def __len__(self) -> int:
        """Requests with inputs to compute."""
        return len(self._turns)

    def add(self, request: Embed, expanded: Sequence[tuple[list[int], Runs]] = ()) -> None:
        """Queue a request. `expanded` are the tokens and runs of inputs with media, of all of them if there are any."""
        places = list(zip(request.indices, request.inputs, strict=True))
        if expanded:
            inputs = deque(
                Input(request.id, index, array("i", tokens).tobytes(), request.lora, runs)
                for (index, _), (tokens, runs) in zip(places, expanded, strict=True)
            )
        else:
            inputs = deque(Input(request.id, index, tokens, request.lora) for index, tokens in places)
        self._put(request.id, inputs)

    def _put(self, request: int, inputs: deque[Input]) -> None:
        if inputs:
            self._jobs[request] = inputs
            self._turns.append(request)

    def remove(self, request: int) -> bool:
        """Forget a request; whether there was anything left of it."""
        if self._jobs.pop(request, None) is None:
            return False
        self._turns.remove(request)
        return True

    def retry(self, inputs: list[Input]) -> None:
        """Put inputs back whose batch failed, each to be computed alone."""
        for one in reversed(inputs):
            again = replace(one, alone=True)
            if one.request in self._jobs:
                self._jobs[one.request].appendleft(again)
            else:
                self._put(one.request, deque([again]))

    def take(self, most_tokens: int, most_inputs: int, *, most_each: int | None = None) -> list[Input]:
        """The inputs of the next batch, at least one if there are any: a first one of any length, then what fits beside it.

        One of more than `most_each` tokens is alone.
        """
        batch: list[Input] = []
        left = most_tokens
        passed: list[int] = []
        while self._turns and len(batch) < most_inputs:
            request = self._turns.popleft()
            inputs = self._jobs[request]
            one = inputs[0]
            alone = one.alone or bool(one.runs) or (most_each is not None and one.n_tokens > most_each)
            if batch and (one.n_tokens > left or alone or one.lora != batch[0].lora):
                passed.append(request)
                continue
            batch.append(inputs.popleft())
            left -= one.n_tokens
            if inputs:
                self._turns.append(request)
            else:
                del self._jobs[request]
            if alone:
                break
        self._turns.extendleft(reversed(passed))  # they come first in the next one
        return batch


def deal(inputs: Sequence[Input], n: int) -> list[list[Input]]:
    """Up to `n` shares with about as many tokens each; none is empty."""
    shares: list[list[Input]] = [[] for _ in range(min(n, len(inputs)))]
    loads = [0] * len(shares)
    for one in sorted(inputs, key=lambda one: -one.n_tokens):
        least = loads.index(min(loads))
        shares[least].append(one)
        loads[least] += one.n_tokens
    return shares
