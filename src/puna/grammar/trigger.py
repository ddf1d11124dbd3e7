"""Where a lazy grammar begins: the first trigger in a text that arrives token by token. Pure."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Sequence
from typing import Protocol

from puna.grammar.outside import Outside
from puna.grammar.search import Search
from puna.types import Span, Trigger


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


class _Finder(Protocol):
    def feed(self, piece: bytes) -> int | None:
        """Take more; where what is looked for begins, in bytes of the whole text."""
        ...


def _finder(trigger: Trigger) -> _Finder:
    finder: _Finder
    if trigger.kind == "word":
        finder = _Word(trigger.value)
    else:
        finder = Search(trigger.value, whole=trigger.kind == "pattern_full")
    return _Elsewhere(finder, trigger.outside) if trigger.outside else finder


class _Elsewhere:
    """Searches in what lies outside of spans."""

    def __init__(self, finder: _Finder, span: Span) -> None:
        self._finder = finder
        self._outside = Outside(span)
        self._places: list[tuple[int, int]] = []
        """Where each piece begins in what is searched, and in the whole text."""
        self._n = 0

    def feed(self, piece: bytes) -> int | None:
        for at, part in self._outside.feed(piece):
            self._places.append((self._n, at))
            self._n += len(part)
            found = self._finder.feed(part)
            if found is not None:
                begin, place = self._places[bisect_right(self._places, (found, sys.maxsize)) - 1]
                return place + found - begin
            if len(self._places) > 1 and self._places[-2][1] + self._n - len(part) - self._places[-2][0] == at:
                self._places.pop()
        return None


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
