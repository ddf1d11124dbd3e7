"""What steps cost by the number of their rows, as far as that was seen. Pure.

More rows do not cost more evenly: kernels compute several at once, so that a fourth may be free where a third is dear.
"""

from __future__ import annotations

from bisect import bisect_left

FIRST_SLOPE = 0.4
"""What a further row is assumed to cost before that was seen, as a share of one."""

SMOOTHING = 0.2
"""Weight of the newest observation in a running mean of many."""

LEAST_SLOPE = 0.02
"""What a further row costs at least, as a share of one: what was seen is never so exact that it would be free."""


class StepCosts:
    """Seconds of a step by its rows."""

    def __init__(self) -> None:
        self._rows: list[int] = []
        """Numbers of rows that were seen, ascending."""
        self._seconds: dict[int, tuple[float, int]] = {}
        """For each the running mean, and how many it is of."""

    def observe(self, rows: int, seconds: float) -> None:
        """Learn what a step of so many rows took."""
        mean, n = self._seconds.get(rows, (0.0, 0))
        if not n:
            self._rows.insert(bisect_left(self._rows, rows), rows)
        weight = max(SMOOTHING, 1 / (n + 1))
        self._seconds[rows] = mean + weight * (seconds - mean), n + 1

    def seen(self, rows: int) -> float | None:
        """What was seen of exactly so many rows."""
        found = self._seconds.get(rows)
        return found[0] if found else None

    def expected(self, rows: int, n_sure: int) -> float:
        """Seconds to be expected of a step with so many rows. One with `n_sure`, no more, must have been seen.

        What lies between is interpolated. Beyond the largest that was seen hope prevails: a row costs what it did on
        average, or what is usual if that is less, for what is never tried is never learned.
        """
        base = self._seconds[n_sure][0]
        usual = FIRST_SLOPE * base / n_sure
        least = base + LEAST_SLOPE * base / n_sure * (rows - n_sure)
        at = bisect_left(self._rows, rows)
        if at < len(self._rows):
            above = self._rows[at]
            if above == rows:
                return max(least, self._seconds[rows][0])
            below = self._rows[at - 1]
            share = (rows - below) / (above - below)
            return max(least, (1 - share) * self._seconds[below][0] + share * self._seconds[above][0])
        last = self._rows[-1]
        slope = usual if last == n_sure else min(usual, (self._seconds[last][0] - base) / (last - n_sure))
        return max(least, self._seconds[last][0] + slope * (rows - last))
