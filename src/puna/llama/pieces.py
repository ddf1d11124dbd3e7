"""Long texts in pieces whose tokens do not depend on each other. Pure.

The engine looks for words with a recursive matcher: a word of some 50,000 characters overflows the stack and ends the process.
And what it does with characters that a vocabulary lacks takes time that grows with the square of the text's length.
"""

from __future__ import annotations

from collections.abc import Sequence

PIECE = 4096
"""Characters of a piece, where the text allows it: a matcher needs up to 500 bytes of stack for each."""


def pieces(text: str, marks: Sequence[str], *, anywhere: bool) -> list[str]:
    """`text` in pieces that join to it, cut before a single blank between words as far as there are any.

    No cut touches one of `marks`, texts that may be tokens as a whole. Without a blank a piece ends after `PIECE` characters if
    cuts are allowed `anywhere`, or else where the next blank is.
    """
    marks = [mark for mark in marks if len(mark) > 1]
    found: list[str] = []
    start = 0
    while len(text) - start > PIECE:
        end = _last_gap(text, start + 1, start + PIECE, marks)
        if end < 0 and anywhere:
            end = _outside_marks(text, start + PIECE, start + 1, marks)
        elif end < 0:
            end = _next_gap(text, start + PIECE, marks)
        if end < 0:
            break
        found.append(text[start:end])
        start = end
    found.append(text[start:])
    return found


def _last_gap(text: str, low: int, high: int, marks: Sequence[str]) -> int:
    at = text.rfind(" ", low, high)
    while at >= 0 and not (_is_gap(text, at) and _is_free(text, at, at + 1, marks)):
        at = text.rfind(" ", low, at)
    return at


def _next_gap(text: str, low: int, marks: Sequence[str]) -> int:
    at = text.find(" ", low)
    while at >= 0 and not (_is_gap(text, at) and _is_free(text, at, at + 1, marks)):
        at = text.find(" ", at + 1)
    return at


def _is_gap(text: str, at: int) -> bool:
    # some vocabularies have tokens of punctuation with a blank in it
    return 0 < at < len(text) - 1 and text[at - 1].isalnum() and text[at + 1].isalnum()


def _is_free(text: str, first: int, last: int, marks: Sequence[str]) -> bool:
    """Whether no mark lies over or directly beside the characters from `first` to `last`."""
    return all(text.find(mark, max(0, first - len(mark)), last + len(mark)) < 0 for mark in marks)


def _outside_marks(text: str, at: int, low: int, marks: Sequence[str]) -> int:
    """The last place up to `at` that lies within no mark; `at` itself if there is none."""
    for end in range(at, low, -1):
        if not any(text.find(mark, max(0, end - len(mark) + 1), end + len(mark) - 1) >= 0 for mark in marks):
            return end
    return at
