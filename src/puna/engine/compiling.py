"""Requests whose grammar is being compiled on another thread."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait

from puna.engine.sequence import Sequence

COMPILE_WAIT = 0.02
"""Seconds that a step waits for a grammar to be compiled when there is nothing else to do."""


class Compiling:
    """They queue for a seat once their grammar is there."""

    def __init__(self) -> None:
        self._work: list[tuple[Sequence, Future[None]]] = []

    def __len__(self) -> int:
        return len(self._work)

    def __iter__(self) -> Iterator[Sequence]:
        return (sequence for sequence, _ in self._work)

    @property
    def ids(self) -> list[int]:
        """The requests."""
        return [sequence.id for sequence in self]

    def add(self, sequence: Sequence, work: Future[None]) -> None:
        """Keep a request until `work` is done."""
        self._work.append((sequence, work))

    def find(self, request: int) -> Sequence | None:
        """The sequence of a request."""
        return next((sequence for sequence in self if sequence.id == request), None)

    def remove(self, request: int) -> None:
        """Forget a request."""
        self._work = [(sequence, work) for sequence, work in self._work if sequence.id != request]

    def take_done(self, *, patient: bool) -> list[Sequence]:
        """Those whose grammar is there; if `patient`, wait a moment for one."""
        if not self._work:
            return []
        if patient:
            wait([work for _, work in self._work], COMPILE_WAIT, return_when=FIRST_COMPLETED)
        done = [sequence for sequence, work in self._work if work.done()]
        self._work = [(sequence, work) for sequence, work in self._work if not work.done()]
        return done
