"""The context's length follows what the requests need."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from puna.engine.arena import Arena
from puna.engine.scheduler import Scheduler
from puna.engine.sequence import Sequence


class ContextLength:
    """Lets the context grow at once when a running sequence needs more room, and shrink when nothing has for a while."""

    def __init__(self, arena: Arena, scheduler: Scheduler, preempt: Callable[[Sequence], None]) -> None:
        """`preempt` sends a running sequence back to the queue."""
        self._arena = arena
        self._scheduler = scheduler
        self._preempt = preempt

    def fit(self, compiling: Iterable[Sequence]) -> list[Sequence]:
        """Fit the context to the running sequences; those that are too long for it and for the memory there is.

        `compiling` are requests that do not queue yet.
        """
        scheduler, arena = self._scheduler, self._arena
        longest = max(map(self._least, scheduler.running), default=0)
        needed = min(longest, arena.limit)
        wanted = len(scheduler.running) + len(scheduler.waiting)
        if arena.has_room(needed, wanted):
            self.shrink(compiling)
            return []
        scheduler.n_seats = arena.seats_for(needed, wanted)
        for sequence in scheduler.surplus():
            self._preempt(sequence)
        grown = arena.grow(needed, wanted, scheduler.running)
        scheduler.n_seats = arena.seats
        return [] if grown else [sequence for sequence in scheduler.running if len(sequence.tokens) > arena.limit]

    def shrink(self, compiling: Iterable[Sequence]) -> None:
        """Make the context smaller if no request has needed it for a while, nor is expected to."""
        sequences = (*self._scheduler.running, *self._scheduler.waiting, *compiling)
        expected = max((max(sequence.n_expected, self._least(sequence)) for sequence in sequences), default=0)
        if self._arena.shrink(min(expected, self._arena.limit), len(sequences), self._scheduler.running):
            self._scheduler.n_seats = self._arena.seats

    def _least(self, sequence: Sequence) -> int:
        """Tokens that a sequence needs room for now."""
        return max(len(sequence.tokens), self._arena.least(reproducible=sequence.generation.deterministic))
