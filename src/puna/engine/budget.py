"""How many prompt tokens may go into the next step. Pure arithmetic on observed times."""

from __future__ import annotations

SMOOTHING = 0.2
"""Weight of the newest observation in the running means."""


class StepBudget:
    """Keeps steps short enough that running streams do not feel a long prefill.

    While nothing decodes, a step may take `idle_target` seconds: long enough to be efficient, short enough that an
    abort or a new request is noticed soon. While `n` sequences decode, a step may take `stretch` times what a step
    without any prefill takes for `n` sequences.
    """

    def __init__(self, *, n_ubatch: int, stretch: float = 3.0, idle_target: float = 0.5, least: int = 8) -> None:
        self._n_ubatch = n_ubatch
        self._stretch = stretch
        self._idle_target = idle_target
        self._least = min(least, n_ubatch)
        self._quiet: dict[int, float] = {}
        """Seconds of a step that only decodes, by the number of sequences in it."""
        self._per_token: float | None = None
        """Seconds that one more prompt token adds to a step."""

    def observe(self, n_decoding: int, n_prefill: int, seconds: float) -> None:
        """Learn from a finished step."""
        if n_prefill == 0:
            if n_decoding:
                self._quiet[n_decoding] = _mean(self._quiet.get(n_decoding), seconds)
            return
        if n_prefill < self._least:
            return  # too few tokens to tell their cost from the step's fixed cost
        cost = max(seconds - self.quiet(n_decoding), seconds * 0.2) / n_prefill
        self._per_token = _mean(self._per_token, cost)

    def quiet(self, n_decoding: int) -> float:
        """Expected seconds of a step in which `n_decoding` sequences decode and nobody prefills; 0 if unknown."""
        if n_decoding == 0 or not self._quiet:
            return 0.0
        if n_decoding in self._quiet:
            return self._quiet[n_decoding]
        nearest = min(self._quiet, key=lambda n: abs(n - n_decoding))
        return self._quiet[nearest]

    def patience(self, n_decoding: int) -> float:
        """Seconds that a step may be stretched by while `n_decoding` sequences decode."""
        quiet = self.quiet(n_decoding)
        return (self._stretch - 1) * quiet if quiet else self._idle_target / 5

    def tokens(self, n_decoding: int) -> int:
        """Most prompt tokens for the next step, at least 1."""
        if self._per_token is None:
            return min(self._n_ubatch, 128 if n_decoding == 0 else 32)
        seconds = self.patience(n_decoding) if n_decoding else self._idle_target
        return max(self._least, min(self._n_ubatch, int(seconds / self._per_token)))


def _mean(old: float | None, new: float) -> float:
    return new if old is None else old + SMOOTHING * (new - old)
