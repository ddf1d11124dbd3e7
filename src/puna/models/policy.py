"""Which models have to go, for another one or because nobody wants them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Resident:
    """A model that takes memory: loaded, or on its way."""

    name: str
    needed: int
    """Bytes."""
    busy: bool
    """Whether a request holds it, or it is being loaded: then it stays."""
    last_used: float
    """When a request last let go of it."""


def to_evict(residents: Iterable[Resident], needed: int, *, most: int, budget: int) -> list[str] | None:
    """Names of the models to unload, least recently used first, before one of `needed` bytes is loaded.

    `most` is how many may be loaded, `budget` how many bytes they may take; 0 is no limit. None when those that are not busy
    do not suffice: then it has to wait.
    """
    stay = sorted(residents, key=lambda one: one.last_used)
    idle = [one for one in stay if not one.busy]
    gone: list[str] = []
    count, taken = len(stay), sum(one.needed for one in stay)
    while (most and count + 1 > most) or (budget and taken + needed > budget and count):
        if not idle:
            return None
        first = idle.pop(0)
        gone.append(first.name)
        count, taken = count - 1, taken - first.needed
    return gone


def to_sleep(residents: Iterable[Resident], now: float, *, after: float) -> list[str]:
    """Names of the models that nobody has used for `after` seconds; 0 and less is never."""
    if after <= 0:
        return []
    return [one.name for one in residents if not one.busy and now - one.last_used >= after]


def next_look(residents: Iterable[Resident], now: float, *, after: float) -> float | None:
    """Seconds until the next model could fall asleep; None when there is none."""
    waits = [after - (now - one.last_used) for one in residents if not one.busy]
    return max(0.0, min(waits)) if waits and after > 0 else None
