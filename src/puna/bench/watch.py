"""What a process on this machine uses while it is under load. Linux only; elsewhere nothing is measured."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Usage:
    """A process at one moment."""

    at: float
    cpu_seconds: float
    memory: int
    """Resident bytes that are its own."""


def usage(pid: int, root: Path = Path("/proc")) -> Usage | None:
    """What the process has used so far; None if it cannot be told."""
    try:
        # the name in parentheses may hold anything, so count from the last closing one
        fields = (root / str(pid) / "stat").read_text().rpartition(")")[2].split()
        pages = (root / str(pid) / "statm").read_text().split()
    except OSError:
        return None
    ticks = int(fields[11]) + int(fields[12])
    own = int(pages[1]) - int(pages[2])
    return Usage(time.perf_counter(), ticks / os.sysconf("SC_CLK_TCK"), own * os.sysconf("SC_PAGE_SIZE"))


def between(before: Usage | None, after: Usage | None) -> dict[str, float]:
    """Per cent of one core, and megabytes at the end."""
    if before is None or after is None or after.at <= before.at:
        return {}
    share = 100 * (after.cpu_seconds - before.cpu_seconds) / (after.at - before.at)
    return {"cpu": share, "memory": after.memory / 1e6}
