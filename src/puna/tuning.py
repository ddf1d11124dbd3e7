"""How a model is computed, and how that was found out. Plain values."""

from __future__ import annotations

from typing import Literal

import msgspec


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two ways of computing that were measured beside each other."""

    what: str
    used: str
    """The way that was in use until then."""
    other: str
    ratio: float
    """Time of the other one, as a share of the time of the one in use; the median of the pairs."""
    n_pairs: int
    changed: bool
    """Whether the other one is used from then on."""

    def report(self) -> str:
        """The comparison in one line."""
        outcome = "taken" if self.changed else "not taken"
        return f"{self.what}: {self.other} takes {self.ratio:.2f} of the time of {self.used} ({self.n_pairs} pairs), {outcome}"


class Tuning(msgspec.Struct, frozen=True, kw_only=True):
    """How a model is computed on a machine, where that is a matter of speed alone."""

    layout: Literal["unified", "split"]
    flash_short: bool
    """Flash attention in the first, short context."""
    flash_long: bool
    """Flash attention in all others."""
    n_threads: int
    """Threads for a single token."""
    n_threads_batch: int
    """Threads for everything else: prompts, and the tokens of several sequences."""
    source: Literal["rules", "measured", "stored"] = "rules"
    """Where it comes from: rules and flags alone, a measurement now, or one of an earlier start."""
    seconds: float = 0.0
    """What the measurement took."""
    comparisons: tuple[Comparison, ...] = ()
    complete: bool = True
    """Whether there was time for all of them; the next start makes the others."""

    def report(self) -> str:
        """What was chosen, and why, in one line."""
        where = {(True, True): "on", (False, False): "off", (True, False): "in short contexts", (False, True): "in long contexts"}
        threads = f"{self.n_threads} threads"
        if self.n_threads_batch != self.n_threads:
            threads += f", {self.n_threads_batch} for batches"
        chosen = f"{self.layout} layout, flash attention {where[self.flash_short, self.flash_long]}, {threads}"
        if self.source == "rules":
            return f"{chosen}; not measured"
        when = f"in {self.seconds:g} s" if self.source == "measured" else "at an earlier start"
        rest = "" if self.complete else "; the next start tries the rest"
        if not self.comparisons:
            return f"{chosen}; nothing could be tried {when}{rest}"
        n_better = sum(made.changed for made in self.comparisons)
        n = len(self.comparisons)
        return f"{chosen}; {n} alternative{'s' * (n > 1)} tried {when}, {n_better or 'none'} of them faster{rest}"
