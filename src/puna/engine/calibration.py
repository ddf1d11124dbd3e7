"""Which way of computing suits a model and a machine. Pure: measuring is handed in.

Decode and prefill pull in different directions, so ways are compared by the machine's time for a usual request: so many
prompt tokens read, so many written, half of them alone and half beside other streams. Whatever is in use stays unless the
other one is clearly better in every pair of measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from msgspec.structs import replace as replaced

from puna.tuning import Comparison, Tuning

READ = 400
"""Prompt tokens of a usual request that are not in the cache."""
WRITTEN = 200
"""Tokens of its answer."""

BETTER = 1.08
"""How many times faster another way must be."""
CLEARLY = 1.16
"""So many times faster that the fewest pairs suffice."""
SLOWER = 1.05
"""So many times slower that one pair suffices: nothing changes by it."""
FEWEST, MOST = 2, 5
"""Pairs that are measured before anything changes, and in all."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way of computing."""

    layout: Literal["unified", "split"]
    flash: bool
    n_threads: int
    n_threads_batch: int
    deep: bool
    """Whether sequences are long already."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The machine's seconds for one token, measured once."""

    alone: float
    """Written by the only stream."""
    crowd: float
    """Written by one of several streams."""
    reading: float


Measure = Callable[[Way], Costs | None]
"""Measures a way once; None when there is no time left for it, or when it cannot be had."""
Weigh = Callable[[Costs], float]


def request(costs: Costs) -> float:
    """Seconds of a usual request."""
    return READ * costs.reading + WRITTEN * (costs.alone + costs.crowd) / 2


def single(costs: Costs) -> float:
    """Seconds of what is computed one token at a time."""
    return costs.alone


def batched(costs: Costs) -> float:
    """Seconds of what is computed several tokens at a time, as far as it belongs to a usual request."""
    return READ * costs.reading + WRITTEN * costs.crowd / 2


Pairs = Sequence[tuple[Costs, Costs]]
"""Measurements of the way in use and of another one, taken next to each other."""


def ratios(pairs: Pairs, weigh: Weigh) -> list[float]:
    """Time of the other way as a share of the time of the one in use, pair by pair."""
    return [weigh(other) / weigh(used) for used, other in pairs]


def is_better(pairs: Pairs, weigh: Weigh) -> bool:
    """Whether the other way should be used."""
    found = ratios(pairs, weigh)
    return len(found) >= FEWEST and median(found) < 1 / BETTER and max(found) < 1


def is_decided(pairs: Pairs, weigh: Weigh) -> bool:
    """Whether more pairs would hardly change the answer."""
    found = ratios(pairs, weigh)
    if len(found) < FEWEST:
        return bool(found) and min(found) > SLOWER
    return len(found) >= MOST or max(found) < 1 / CLEARLY or min(found) > 1 / BETTER


def measure_pairs(measure: Measure, used: Way, other: Way, weigh: Weigh) -> Pairs:
    """Measure two ways in turn, the first to go changing, until it is clear which is better or there is no time left."""
    pairs: list[tuple[Costs, Costs]] = []
    while not is_decided(pairs, weigh):
        order = (used, other) if len(pairs) % 2 == 0 else (other, used)
        first = measure(order[0])
        second = measure(order[1]) if first else None
        if first is None or second is None:
            break
        pairs.append((first, second) if order[0] is used else (second, first))
    return pairs


@dataclass(frozen=True, slots=True)
class Open:
    """What is to be found out; everything else is as the user said, or has only one sensible value."""

    flash: bool
    layout: bool
    short: bool
    """Whether the first, short context may use another kind of attention than the larger ones."""
    n_threads: tuple[int, ...] = ()
    """Numbers of threads to try for a single token."""
    n_threads_batch: tuple[int, ...] = ()
    """Numbers of threads to try for everything else."""

    @property
    def nothing(self) -> bool:
        return not (self.flash or self.layout or self.n_threads or self.n_threads_batch)


def thread_counts(cores: int, physical: int) -> tuple[int, ...]:
    """Numbers of threads worth trying beside one a core: one a physical core, and one less than all."""
    wanted = (physical if physical < cores else 0, cores - 1 if cores > 2 else 0)
    return tuple(dict.fromkeys(n for n in wanted if n > 0))


def calibrate(start: Tuning, to_find: Open, measure: Measure, known: Sequence[Comparison] = ()) -> Tuning:
    """The tuning that suits best as far as there was time to find out; what is most at stake comes first.

    `known` are comparisons of an earlier time, which are not made again.
    """
    search = _Search(start, measure, known)
    for n in to_find.n_threads:
        search.try_threads(n)
    for n in to_find.n_threads_batch:
        search.try_threads(n, batch=True)
    if to_find.flash:
        search.try_flash(deep=True)
        if not to_find.short:
            search.tuning = replaced(search.tuning, flash_short=search.tuning.flash_long)
    if to_find.layout:
        search.try_layout()
    if to_find.flash and to_find.short:
        search.try_flash(deep=False)
    return replaced(search.tuning, complete=search.complete)


class _Search:
    """One comparison after another, each beside the best so far."""

    def __init__(self, tuning: Tuning, measure: Measure, known: Sequence[Comparison]) -> None:
        self.tuning = tuning
        self.complete = True
        """Whether every comparison that was wanted was made."""
        self._measure = measure
        self._known = {(made.what, made.used, made.other): made for made in known}

    def _way(self, *, deep: bool) -> Way:
        tuning = self.tuning
        flash = tuning.flash_long if deep else tuning.flash_short
        return Way(tuning.layout, flash, tuning.n_threads, tuning.n_threads_batch, deep)

    def try_threads(self, n: int, *, batch: bool = False) -> None:
        used = self._way(deep=False)
        if batch:
            if self._is_better("threads for batches", used, replace(used, n_threads_batch=n), used.n_threads_batch, n, batched):
                self.tuning = replaced(self.tuning, n_threads_batch=n)
        elif self._is_better("threads for one token", used, replace(used, n_threads=n), used.n_threads, n, single):
            self.tuning = replaced(self.tuning, n_threads=n)

    def try_flash(self, *, deep: bool) -> None:
        used = self._way(deep=deep)
        other = replace(used, flash=not used.flash)
        what = f"flash attention in {'long' if deep else 'short'} contexts"
        if self._is_better(what, used, other, _on(used.flash), _on(other.flash), request):
            self.tuning = replaced(self.tuning, **{"flash_long" if deep else "flash_short": other.flash})

    def try_layout(self) -> None:
        used = self._way(deep=True)
        other = replace(used, layout="split" if used.layout == "unified" else "unified")
        if self._is_better("layout", used, other, used.layout, other.layout, request):
            self.tuning = replaced(self.tuning, layout=other.layout)

    def _is_better(self, what: str, used: Way, other: Way, used_name: object, other_name: object, weigh: Weigh) -> bool:
        """Compare two ways, or remember how they compared; write it down unless there was no time to tell."""
        made = self._known.get((what, str(used_name), str(other_name)))
        if made is None:
            pairs = measure_pairs(self._measure, used, other, weigh)
            if not is_decided(pairs, weigh):
                self.complete = False
                return False
            made = Comparison(
                what=what,
                used=str(used_name),
                other=str(other_name),
                ratio=round(median(ratios(pairs, weigh)), 3),
                n_pairs=len(pairs),
                changed=is_better(pairs, weigh),
            )
        self.tuning = replaced(self.tuning, comparisons=(*self.tuning.comparisons, made))
        return made.changed


def _on(flash: bool) -> str:
    return "on" if flash else "off"
