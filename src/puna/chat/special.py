"""The texts of a vocabulary's control tokens, and where they occur in other text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable

Span = tuple[int, int]
"""Start and end offset."""

_HEAD = 2


class SpecialTexts:
    """Finds control-token texts. A vocabulary may have thousands of them, so the text is scanned for their first two
    characters only and the rest is looked up."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts = frozenset(filter(None, texts))
        self._sorted = sorted(self.texts)
        self._reversed = sorted(text[::-1] for text in self.texts)
        self._longest = max(map(len, self.texts), default=0)
        lengths: dict[str, set[int]] = {}
        for text in self.texts:
            lengths.setdefault(text[:_HEAD], set()).add(len(text))
        self._lengths = {head: sorted(found, reverse=True) for head, found in lengths.items()}
        self._heads = _any_of(self._lengths)
        self._starts = _any_of({text[0] for text in self.texts})
        self._ends = _any_of({text[-1] for text in self.texts})

    def find(self, text: str) -> list[Span]:
        """All occurrences in `text`, from the left, the longest first, without overlaps."""
        spans: list[Span] = []
        match = self._heads.search(text) if self._heads else None
        while match is not None and self._heads is not None:
            start = match.start()
            end = start + self._length_at(text, start)
            if end > start:
                spans.append((start, end))
            match = self._heads.search(text, max(end, start + 1))
        return spans

    def _length_at(self, text: str, start: int) -> int:
        candidates = [*self._lengths.get(text[start : start + _HEAD], ()), *self._lengths.get(text[start], ())]
        # The slice is shorter than asked for at the end of the text.
        return next((len(piece) for length in candidates if (piece := text[start : start + length]) in self.texts), 0)

    def loose_ends(self, text: str) -> list[Span]:
        """The parts at either end of `text`, blanks aside, that would be a control token's with the right neighbour."""
        spans: list[Span] = []
        if not self._longest:
            return spans
        start = len(text) - len(text.lstrip())
        end = len(text.rstrip())
        if self._ends:
            for match in self._ends.finditer(text, start, min(end, start + self._longest)):
                if _begins_another(self._reversed, text[start : match.end()][::-1]):
                    spans.append((start, match.end()))
                    start = match.end()
                    break
        if self._starts:
            for match in self._starts.finditer(text, max(start, end - self._longest), end):
                if _begins_another(self._sorted, text[match.start() : end]):
                    spans.append((match.start(), end))
                    break
        return spans


def _any_of(texts: Iterable[str]) -> re.Pattern[str] | None:
    choices = [re.escape(text) for text in sorted(texts, key=len, reverse=True)]
    return re.compile("|".join(choices)) if choices else None


def _begins_another(ordered: list[str], text: str) -> bool:
    """Whether `text` is the beginning of a longer member of `ordered`."""
    index = bisect_left(ordered, text)
    if index < len(ordered) and ordered[index] == text:
        index += 1
    return index < len(ordered) and ordered[index].startswith(text)
