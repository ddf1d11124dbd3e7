"""Which adapters apply where in a sequence. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from puna.errors import InvalidRequest

Scales = tuple[tuple[int, float], ...]
"""(adapter id, scale) pairs, by id, none with a scale of 0."""


@dataclass(frozen=True, slots=True)
class AdapterSet:
    """Adapters that apply together. Sets are equal if what they do to a model is."""

    scales: Scales = ()
    mark: bytes = b""
    """Says the same in words that hold beyond this process: what the files contain, and the scales. Empty for none."""


@dataclass(frozen=True, slots=True)
class Phase:
    """The part of a sequence from one position on, up to where the next phase starts."""

    start: int
    adapters: AdapterSet


Phases = tuple[Phase, ...]
"""The first one starts at 0; neighbours have different adapters."""

NO_ADAPTERS = AdapterSet()
PLAIN: Phases = (Phase(0, NO_ADAPTERS),)


@dataclass(frozen=True, slots=True)
class Adapter:
    """A loaded adapter, as far as it matters here."""

    digest: bytes
    """Of its file's content."""
    invocation: tuple[int, ...] = ()
    """The tokens in a prompt from which on it applies; none for one that always does."""


@dataclass(frozen=True, slots=True)
class Adapters:
    """All that changes a model."""

    loaded: tuple[Adapter, ...] = ()
    """By id."""
    base: bytes = b""
    """Tells apart what changes every request alike, such as a control vector."""

    def phases(self, scales: Iterable[tuple[int, float]], prompt: Sequence[int]) -> Phases:
        """Which adapters apply where, if these are wanted.

        An adapter with an invocation applies from the beginning of the last one in the prompt on, and nowhere if there is
        none. Raises `InvalidRequest` for an adapter that is not loaded.
        """
        starts: dict[int, dict[int, float]] = {0: {}}
        for id, scale in scales:
            if not 0 <= id < len(self.loaded):
                raise InvalidRequest(f"there is no adapter {id}; {len(self.loaded)} are loaded", param="lora")
            start = last_occurrence(self.loaded[id].invocation, prompt)
            if start >= 0 and (rounded := as_float32(scale)):
                starts.setdefault(start, {})[id] = rounded
        active: dict[int, float] = {}
        phases: list[Phase] = []
        for start in sorted(starts):
            active |= starts[start]
            phases.append(Phase(start, self._set(tuple(sorted(active.items())))))
        return tuple(phases)

    def _set(self, scales: Scales) -> AdapterSet:
        mark = b"".join(self.loaded[id].digest + struct.pack("<f", scale) for id, scale in scales)
        return AdapterSet(scales, mark)


def last_occurrence(part: Sequence[int], whole: Sequence[int]) -> int:
    """Where `part` occurs in `whole` for the last time; -1 if nowhere, 0 for an empty one."""
    if not part:
        return 0
    wanted = list(part)
    for start in range(len(whole) - len(wanted), -1, -1):
        if whole[start] == wanted[0] and list(whole[start : start + len(wanted)]) == wanted:
            return start
    return -1


def as_float32(value: float) -> float:
    """The number as the engine will see it."""
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded


def agreement(a: Phases, b: Phases) -> int | None:
    """The position from which on the adapters differ; None where they never do."""
    for one, other in zip_longest(a, b):
        if one != other:
            return min(phase.start for phase in (one, other) if phase is not None)
    return None


def without(phases: Phases, start: int, count: int) -> Phases:
    """What becomes of them when `count` positions from `start` on are taken out of the sequence."""
    end = start + count
    moved = {phase.start - count if phase.start >= end else min(phase.start, start): phase.adapters for phase in phases}
    return tuple(Phase(at, adapters) for at, adapters in moved.items())
