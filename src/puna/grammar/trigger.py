"""Where a lazy grammar begins: the first trigger in a text that arrives token by token. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from puna.grammar.search import Search
from puna.types import Trigger


class LazyTrigger:
    """Watches an answer for its triggers.

    A word or a pattern may lie across tokens, and begin or end within one. What is constrained starts exactly where it
    does: the rest of that token belongs to it. Of several triggers that end in the same token the first in the list counts.
    """

    def __init__(self, triggers: Sequence[Trigger]) -> None:
        """Raises `RegexError` for a pattern that cannot be searched for."""
        self._tokens = {trigger.token for trigger in triggers if trigger.kind == "token"}
        self._finders = [_finder(trigger) for trigger in triggers if trigger.kind != "token"]
        self._text = bytearray()

    def feed(self, token: int, piece: bytes) -> bytes | None:
        """Take the next token, with its text; once a trigger is found, all text from there on, else None."""
        if token in self._tokens:
            return piece
        self._text += piece
        starts = [finder.feed(piece) for finder in self._finders]
        start = next((start for start in starts if start is not None), None)
        return None if start is None else bytes(self._text[start:])


def _finder(trigger: Trigger) -> Search | _Word:
    if trigger.kind == "word":
        return _Word(trigger.value)
    return Search(trigger.value, whole=trigger.kind == "pattern_full")


class _Word:
    """Searches for a text."""

    def __init__(self, word: str) -> None:
        self._word = word.encode()
        self._tail = b""
        """The end of the text, as much as may be the beginning of the word."""
        self._at = 0
        """Where the tail begins."""

    def feed(self, piece: bytes) -> int | None:
        text = self._tail + piece
        found = text.find(self._word)
        if found >= 0:
            return self._at + found
        keep = min(len(text), len(self._word) - 1)
        self._at += len(text) - keep
        self._tail = text[len(text) - keep :]
        return None
