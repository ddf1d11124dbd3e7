"""Where vectors of pictures and sounds stand among a sequence's tokens. Pure.

A vector takes the place of a token, under an id that is made from what it was encoded from and that no token has. So what
compares tokens compares pictures too. Positions may differ from places: where a model knows rows and columns, a picture
takes fewer positions than it has vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import shake_256
from typing import Protocol

import numpy as np
import numpy.typing as npt


class Vectors(Protocol):
    """What has to be known of a run of vectors here."""

    @property
    def n_tokens(self) -> int:
        """How many there are."""
        ...

    @property
    def n_pos(self) -> int:
        """Positions up to what follows them."""
        ...

    @property
    def causal(self) -> bool:
        """Whether they may be computed bit by bit."""
        ...

    def positions(self, start: int, /) -> npt.NDArray[np.int32]:
        """Their positions if the run stands at `start`: (sections, n_tokens)."""
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """Vectors that are encoded together. They are used whole or not at all."""

    start: int
    """Its first vector's place among the tokens."""
    position: int
    """Its first vector's position."""
    patch: Vectors
    name: bytes
    """What the encoding is known by."""

    @property
    def end(self) -> int:
        """The place behind its last vector."""
        return self.start + self.patch.n_tokens


class Runs:
    """All runs of a sequence, in order."""

    def __init__(self, runs: tuple[Run, ...] = ()) -> None:
        self._runs = runs

    def __bool__(self) -> bool:
        return bool(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def at(self, place: int) -> Run | None:
        """The run that has a vector there."""
        return next((run for run in self._runs if run.start <= place < run.end), None)

    def clip(self, length: int) -> int:
        """The most of the first `length` tokens that end with a whole run, or with a token."""
        run = self.at(length)
        return min(length, run.start) if run is not None else length

    def alike(self, place: int) -> int:
        """How many tokens from `place` on are all vectors of one run, or none of any."""
        run = self.at(place)
        if run is not None:
            return run.end - place
        return next((run.start - place for run in self._runs if run.start > place), 1 << 30)

    def span(self, length: int) -> int:
        """Positions that the first `length` tokens cover: the largest one plus one."""
        run = self.at(length - 1)
        if run is not None and length:
            return int(run.patch.positions(run.position)[0, : length - run.start].max()) + 1
        return self.position(length)

    def position(self, place: int) -> int:
        """The position of a token that stands at `place`."""
        return place - sum(run.patch.n_tokens - run.patch.n_pos for run in self._runs if run.end <= place)


NO_RUNS = Runs()


def ids(name: bytes, n: int) -> list[int]:
    """The ids of `n` vectors with an encoding's name: negative, and none that stands for anything else."""
    drawn = np.frombuffer(shake_256(name).digest(4 * n), "<u4") % np.uint32(2**31 - 2)
    return [-2 - int(value) for value in drawn]
