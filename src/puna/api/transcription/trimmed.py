"""Text without the blanks at its ends, as it comes."""

from __future__ import annotations


class Trimmed:
    """`feed` the text in pieces: what comes out, joined, is the whole without blanks at its ends."""

    def __init__(self) -> None:
        self._begun = False
        self._held = ""

    def feed(self, text: str) -> str:
        """What is certain now."""
        if not self._begun:
            text = text.lstrip()
            self._begun = bool(text)
        text = self._held + text
        kept = text.rstrip()
        self._held = text[len(kept) :]
        return kept
