"""Writing what rests in host memory while nobody asks for anything, so that a process that is killed loses little of it."""

from __future__ import annotations

from collections.abc import Iterator

from puna.engine.disk.tier import DiskTier
from puna.engine.tiers import HostTier
from puna.llama.state import State

PATIENCE = 10.0
"""Seconds without a request before writing begins: a chat that goes on at once is written once and not for each turn."""

POLL = 0.05
"""Seconds until the next look at whether a file is written."""


class IdleWriter:
    """Hands prompts to the disk one after another, the most recently used first, and none while another is being written.

    Each is written once: what is on disk already is left out, and when all is there nothing happens until the next
    request has ended.
    """

    def __init__(self, host: HostTier, disk: DiskTier | None, patience: float = PATIENCE) -> None:
        self._host = host
        self._disk = disk
        self._patience = patience
        self._busy_at = 0.0
        self._done = True
        self._entries: Iterator[tuple[bytes, tuple[int, ...], State]] | None = None

    def busy(self, now: float) -> None:
        """Something is being computed: host memory may change."""
        self._busy_at, self._done, self._entries = now, False, None

    def wait(self, now: float) -> float | None:
        """Seconds until `write` has something to do if nothing is computed before; None when all is done."""
        if self._done or self._disk is None or not len(self._host):
            return None
        return max(POLL if self._disk.n_pending else 0.0, self._busy_at + self._patience - now)

    def write(self, now: float) -> None:
        """Hand over the next prompt, if it is time."""
        if self.wait(now) != 0.0 or self._disk is None:
            return
        if not self._disk.writable(now):
            self._done = True
            return
        self._entries = self._entries or self._host.entries(self._disk.knows)
        entry = next(self._entries, None)
        if entry is None:
            self._done, self._entries = True, None
        else:
            self._disk.store(*entry)
