"""Seats that follow each other, where only such share a batch."""

from __future__ import annotations

from puna.engine.arena import Arena
from puna.engine.scheduler import Scheduler


def seat_together(scheduler: Scheduler, arena: Arena) -> None:
    """Move one sequence down to a free seat, or let two change theirs, where the layout wants seats to be consecutive."""
    memory = arena.memory
    if not memory.compact:
        return
    gap = scheduler.gap()
    if gap is None:
        if pair := scheduler.apart():
            arena.swap(*pair)
        return
    sequence, seat = gap
    if sequence.n_done:
        memory.move(sequence.seat, seat)
    sequence.seat = seat
