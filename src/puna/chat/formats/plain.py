"""Reads a turn in which there is nothing to tell apart."""

from __future__ import annotations

from puna.chat.events import Event, Text


class PlainParser:
    """All output is text."""

    def feed(self, text: str) -> list[Event]:
        """The piece itself."""
        return [Text(text)] if text else []

    def finish(self, *, cut: bool = False) -> list[Event]:
        """Nothing was held back."""
        return []
