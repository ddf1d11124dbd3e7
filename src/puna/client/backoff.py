"""How long to wait before a worker is started again."""

from __future__ import annotations

FIRST = 0.1
"""Seconds before the second fruitless start; each further one waits twice as long."""

MOST = 5.0
"""Seconds that no wait exceeds."""

HEALTHY = 10.0
"""A worker that lived for this many seconds after loading was all right, work or no work."""


class Backoff:
    """No wait after a worker that did something, growing waits after workers that did not."""

    def __init__(self) -> None:
        self._fruitless = 0

    def died(self, *, progress: bool, lived: float) -> float:
        """Return the seconds to wait now.

        `progress` says whether the worker brought any request further, `lived` how long it was ready, in seconds.
        """
        if progress or lived >= HEALTHY:
            self._fruitless = 0
            return 0.0
        wait = min(MOST, FIRST * 2.0 ** min(self._fruitless - 1, 16)) if self._fruitless else 0.0
        self._fruitless += 1
        return wait
