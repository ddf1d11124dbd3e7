"""What a fake worker is to do: written by a test, read by the worker's process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import msgspec

FAKE_WORKER = Path(__file__).with_name("fake_worker.py")


class Killer(msgspec.Struct, frozen=True):
    """A request that kills the worker, known by the first token of its prompt."""

    at: int
    """The token before which it strikes, counted from 0; -1 is during prefill."""
    signal: str = "SIGABRT"
    phase: Literal["decode", "sample", "constrain"] = "decode"
    times: int = 1000
    """How often it does so, over all lives."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """One fake model and its faults."""

    folder: str
    """Where the lives are counted."""
    n_slots: int = 4
    n_ctx: int = 4096
    n_vocab: int = 100_000
    step_ms: float = 1.0
    prefill: int = 1000
    """Prompt tokens read in one step."""
    tokens_per_step: int = 1
    fail_loading: str = ""
    """The reason, for `Failed`."""
    fail_after: int = 0
    """Lives that load before `fail_loading` comes true."""
    hang_loading: bool = False
    deaf: bool = False
    """Ignore SIGTERM and the end of the channel."""
    die_loading: str = ""
    """A signal's name."""
    die_calibrating: bool = False
    """Die by SIGSEGV in a calibration."""
    die_idle: int = 0
    """Lives that end, by SIGKILL, as soon as the model is loaded."""
    sigill_unless_safe: bool = False
    """Die by SIGILL in the first decode, or with `die_loading` while loading, unless in safe mode."""
    garbage: bool = False
    """Send noise before the first step's frame, in one life."""
    bad_grammar: bool = False
    """End every request with an error of kind `invalid`."""
    killers: dict[int, Killer] = {}
    end_frame_apart: bool = False
    """Send the end of a request one step after its last token."""

    def command(self) -> tuple[str, ...]:
        """What starts this worker."""
        return (sys.executable, str(FAKE_WORKER), msgspec.json.encode(self).decode())


def token(prompt: tuple[int, ...], index: int) -> int:
    """The fake model's `index`-th token: a function of prompt and place alone, so that a repeat or a gap shows."""
    return (prompt[index % len(prompt)] * 31 + index * 7) % 1000


def answer(prompt: tuple[int, ...], n: int) -> list[int]:
    """The first `n` tokens."""
    return [token(prompt, index) for index in range(n)]
