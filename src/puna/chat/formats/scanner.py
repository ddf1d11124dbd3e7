"""Text that arrives in pieces, looked through for marks. Nothing is held back but what may be the beginning of one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_SPACE = re.compile(r"\s*")


class Marks:
    """Texts to look for at the same time. Where several begin at the same place the longest counts."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Empty texts are left out."""
        self.texts = tuple(sorted({text for text in texts if text}, key=len, reverse=True))
        self._find = re.compile("|".join(map(re.escape, self.texts))) if self.texts else None
        self._beginnings = frozenset(text[:end] for text in self.texts for end in range(1, len(text)))
        self._longest = max(map(len, self.texts), default=0)

    def find(self, text: str, at: int) -> tuple[int, str]:
        """Where the first mark from `at` on is, and which; or the text's length and an empty text."""
        match = self._find.search(text, at) if self._find else None
        return (match.start(), match.group()) if match else (len(text), "")

    def loose_end(self, text: str, at: int) -> int:
        """Where the longest end of the text begins that may become a mark; its length if there is none. Not before `at`."""
        for start in range(max(at, len(text) - self._longest + 1), len(text)):
            if text[start:] in self._beginnings:
                return start
        return len(text)

    def grows(self, mark: str) -> bool:
        """Whether the mark is the beginning of a longer one."""
        return mark in self._beginnings


@lru_cache(maxsize=1024)
def marks_of(*texts: str) -> Marks:
    """Texts to look for; made once."""
    return Marks(texts)


class Scanner:
    """A reader's place in the text."""

    def __init__(self) -> None:
        self._text = ""
        self._at = 0
        self.ended = False
        """Whether no more text comes."""
        self.cut = False
        """Whether it ended otherwise than by the model's own decision: what may be half a mark is left out then."""

    def feed(self, text: str) -> None:
        """Add the next piece."""
        self._text = self._text[self._at :] + text
        self._at = 0

    def end(self, *, cut: bool) -> None:
        """No more text comes."""
        self.ended = True
        self.cut = cut

    @property
    def empty(self) -> bool:
        """Whether all that came was taken."""
        return self._at >= len(self._text)

    def until(self, marks: Marks, *, leave: bool = False) -> tuple[str, str]:
        """Take the text before the first mark, and the mark unless it is to be left; an empty one while there is none.

        The text's end is left where it may become a mark.
        """
        text, at = self._text, self._at
        place, mark = marks.find(text, at)
        if mark and marks.grows(mark) and not self.ended and marks.loose_end(text, place) == place:
            mark = ""
            end = place
        elif mark:
            end = place
        else:
            end = marks.loose_end(text, at)
            if self.ended:
                place, end = end, len(text)
                if self.cut:
                    self._at = end
                    return text[at:place], ""
        self._at = end + (0 if leave else len(mark))
        return text[at:end], mark

    def take(self, mark: str) -> bool | None:
        """Take the mark if it comes next. None while that cannot be told."""
        if self._text.startswith(mark, self._at):
            self._at += len(mark)
            return True
        if len(self._text) - self._at < len(mark) and mark.startswith(self._text[self._at :]):
            return self._undecided()
        return False

    def take_any(self, marks: Marks) -> str | None:
        """Take the mark that comes next; an empty one if none does. None while that cannot be told."""
        text, at = self._text, self._at
        found = next((mark for mark in marks.texts if text.startswith(mark, at)), "")
        if (not found or (marks.grows(found) and not self.ended)) and marks.loose_end(text, at) == at:
            return found if self._undecided() is not None else None
        self._at += len(found)
        return found

    def _undecided(self) -> bool | None:
        """What to say of text that may become a mark: that it is none if it ended, nothing otherwise."""
        if not self.ended:
            return None
        if self.cut:
            self._at = len(self._text)
            return None
        return False

    def space(self) -> str:
        """Take blanks and line ends."""
        match = _SPACE.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        return match.group()

    def match(self, pattern: re.Pattern[str]) -> str:
        """Take what matches here, as far as it has come; the pattern must match any beginning of what it is for."""
        match = pattern.match(self._text, self._at)
        if match is None:
            return ""
        self._at = match.end()
        return match.group()

    def peek(self) -> str:
        """The next character, empty if there is none."""
        return self._text[self._at : self._at + 1]

    def char(self) -> str:
        """Take the next character."""
        char = self.peek()
        self._at += len(char)
        return char

    def rest(self) -> str:
        """Take all there is."""
        rest = self._text[self._at :]
        self._at = len(self._text)
        return rest
