"""When a context that has grown becomes smaller again. Pure: whoever asks says what time it is."""

from __future__ import annotations

PATIENCE = 5.0
"""Seconds for which everything must have fitted the smaller context."""

MOST_PATIENCE = 600.0
SHARE = 50.0
"""A context stays at least this many times as long as it took to make the last ones, so that making them is cheap."""


class ShrinkPolicy:
    """Watches what the running and waiting requests need.

    Long prompts that keep coming keep the context large. Where one comes soon after each shrinking, the patience doubles
    every time, and it is halved again when a smaller context has lasted.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self._least = patience
        self._patience = patience
        self._needed_at = 0.0
        """When the context's length was last needed."""
        self._shrunk_at: float | None = None
        """When it shrank, until it grows again."""
        self._cost = {"grow": 0.0, "shrink": 0.0}
        """Seconds that the last change of each kind took."""

    def grew(self, now: float, seconds: float) -> None:
        """The context has grown, which took so many seconds."""
        if self._shrunk_at is not None:
            lasted = now - self._shrunk_at >= 4 * self._patience
            self._patience = max(self._least, self._patience / 2) if lasted else min(MOST_PATIENCE, 2 * self._patience)
        self._cost["grow"] = seconds
        self._shrunk_at = None
        self._needed_at = now

    def shrank(self, now: float, seconds: float) -> None:
        """The context has become smaller, which took so many seconds."""
        self._cost["shrink"] = seconds
        self._shrunk_at = now
        self._needed_at = now

    def needed(self, now: float) -> None:
        """The present length is needed now."""
        self._needed_at = now

    def wait(self, now: float) -> float:
        """Seconds until the context may shrink if nothing needs its length before; 0 when it may now."""
        patience = max(self._patience, SHARE * sum(self._cost.values()))
        return max(0.0, self._needed_at + patience - now)
