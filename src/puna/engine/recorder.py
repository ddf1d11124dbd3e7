"""Where the engine notes what it is about to do, for whoever finds it dead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from puna.ipc.blackbox import Phase


class Recorder(Protocol):
    """Keeps the last note, whatever becomes of this process."""

    def record(self, phase: Phase, ids: Sequence[int]) -> None: ...

    def decoded(self) -> None: ...
