"""Sets of Unicode code points. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

LAST = 0x10FFFF

Range = tuple[int, int]
"""First and last code point, both included."""

_SURROGATES = (0xD800, 0xDFFF)


class CharSet:
    """An immutable set of code points, kept as sorted ranges that neither overlap nor touch. Surrogates are never in it."""

    __slots__ = ("ranges",)

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self.ranges = tuple(_without_surrogates(_merged(ranges)))

    @classmethod
    def of(cls, text: str) -> CharSet:
        """The characters of a text."""
        return cls((ord(char), ord(char)) for char in text)

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CharSet) and self.ranges == other.ranges

    def __hash__(self) -> int:
        return hash(self.ranges)

    def __contains__(self, code: int) -> bool:
        return any(first <= code <= last for first, last in self.ranges)

    def __or__(self, other: CharSet) -> CharSet:
        if not other.ranges or self is other:
            return self
        return CharSet((*self.ranges, *other.ranges)) if self.ranges else other

    def __repr__(self) -> str:
        return f"CharSet({self.pattern})"

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.ranges)

    def complement(self) -> CharSet:
        """Every other character."""
        found: list[Range] = []
        start = 0
        for first, last in self.ranges:
            if start < first:
                found.append((start, first - 1))
            start = last + 1
        if start <= LAST:
            found.append((start, LAST))
        return CharSet(found)

    def overlaps(self, other: CharSet) -> bool:
        """Whether any character is in both."""
        mine, theirs = iter(self.ranges), iter(other.ranges)
        a, b = next(mine, None), next(theirs, None)
        while a is not None and b is not None:
            if a[0] <= b[1] and b[0] <= a[1]:
                return True
            if a[1] < b[1]:
                a = next(mine, None)
            else:
                b = next(theirs, None)
        return False

    @property
    def pattern(self) -> str:
        """The set as a regular expression that matches one of its characters."""
        if not self.ranges:
            return "[^\\x{0}-\\x{10FFFF}]"
        if len(self) == 1:
            return escape(chr(self.ranges[0][0]))
        return "[" + "".join(_range(first, last) for first, last in self.ranges) + "]"


def escape(text: str) -> str:
    """A regular expression that matches exactly this text, whatever characters it holds."""
    return "".join(char if char.isascii() and char.isalnum() else f"\\x{{{ord(char):X}}}" for char in text)


def _range(first: int, last: int) -> str:
    start = escape(chr(first))
    return start if first == last else f"{start}-{escape(chr(last))}"


def _merged(ranges: Iterable[Range]) -> Iterator[Range]:
    pending: Range | None = None
    for first, last in sorted(ranges):
        if pending is None:
            pending = first, last
        elif first <= pending[1] + 1:
            pending = pending[0], max(pending[1], last)
        else:
            yield pending
            pending = first, last
    if pending is not None:
        yield pending


def _without_surrogates(ranges: Iterable[Range]) -> Iterator[Range]:
    low, high = _SURROGATES
    for first, last in ranges:
        if last < low or first > high:
            yield first, last
            continue
        if first < low:
            yield first, low - 1
        if last > high:
            yield high + 1, last


ANY = CharSet([(0, LAST)])
"""Every character, newlines included."""
