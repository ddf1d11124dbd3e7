"""Answers that are being made, by the ids that clients know them by."""

from __future__ import annotations

from typing import Protocol
from weakref import WeakValueDictionary


class Controllable(Protocol):
    """An answer that can be acted on while it is made."""

    def end_reasoning(self) -> bool:
        """Let the model think no further. Whether that is possible."""
        ...


class Controls:
    """Knows an answer for as long as somebody reads it."""

    def __init__(self) -> None:
        self._running: WeakValueDictionary[str, Controllable] = WeakValueDictionary()

    def add(self, id: str, running: Controllable) -> None:
        """Let clients act on an answer under its public id."""
        self._running[id] = running

    def find(self, id: str) -> Controllable | None:
        """The answer, if it is still being made."""
        return self._running.get(id)
