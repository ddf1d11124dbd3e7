"""Regular expressions as ECMAScript writes them, taken apart. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from puna.grammar.charset import CharSet

MAX_DEPTH = 50
MAX_REPEAT = 1_000


class RegexError(ValueError):
    """An expression that is wrong, or uses what cannot be followed; says what."""


@dataclass(frozen=True, slots=True)
class Char:
    """One character out of a set."""

    chars: CharSet


@dataclass(frozen=True, slots=True)
class Edge:
    """The beginning (`^`) or the end (`$`) of the text."""

    kind: str


@dataclass(frozen=True, slots=True)
class Row:
    """One after the other."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several, the first ones preferred."""

    options: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """A part whose place in the text is of interest."""

    item: Expression


@dataclass(frozen=True, slots=True)
class Loop:
    """The same several times: as often as possible, or (`lazy`) as seldom."""

    item: Expression
    low: int
    high: int | None
    lazy: bool


Expression = Char | Edge | Row | Choice | Group | Loop

_DIGITS = CharSet([(0x30, 0x39)])
_WORD = CharSet([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
_SPACE = CharSet([(9, 13), (32, 32), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F)])
_CLASSES = {
    "d": _DIGITS,
    "D": _DIGITS.complement(),
    "w": _WORD,
    "W": _WORD.complement(),
    "s": _SPACE,
    "S": _SPACE.complement(),
}
_LINES = CharSet.of("\n\r\u2028\u2029").complement()
_CONTROL = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0"}
_LOOPS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_BRACES = re.compile(r"\{([0-9]{1,6})(?:(,)([0-9]{1,6})?)?\}")


def parse_regex(text: str) -> Expression:
    """The parts of an expression. Raises `RegexError`."""
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def whole(self) -> Expression:
        found = self._choice()
        if self._at < len(self._text):
            raise RegexError(f"there is a ')' too many, at character {self._at + 1}")
        return found

    def _choice(self) -> Expression:
        options = [self._row()]
        while self._take("|"):
            options.append(self._row())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _row(self) -> Expression:
        items: list[Expression] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            items.append(self._loop(self._item()))
        return Row(tuple(items))

    def _loop(self, item: Expression) -> Expression:
        char = self._text[self._at : self._at + 1]
        if char in _LOOPS:
            self._at += 1
            low, high = _LOOPS[char]
        elif found := _BRACES.match(self._text, self._at):
            self._at = found.end()
            low = int(found.group(1))
            high = int(found.group(3)) if found.group(3) else None if found.group(2) else low
        else:
            return item
        if isinstance(item, Edge):
            raise RegexError("'^' and '$' cannot be repeated")
        if max(low, high or 0) > MAX_REPEAT or (high is not None and high < low):
            raise RegexError(f"a repetition is impossible, or of more than {MAX_REPEAT} times")
        lazy = self._take("?")
        if self._text[self._at : self._at + 1] in ("*", "+"):
            raise RegexError("a repetition is repeated")
        return Loop(item, low, high, lazy)

    def _item(self) -> Expression:
        char = self._text[self._at]
        self._at += 1
        if char in "^$":
            return Edge(char)
        if char == ".":
            return Char(_LINES)
        if char == "(":
            return self._group()
        if char == "[":
            return Char(self._class())
        if char in "*+?":
            raise RegexError(f"there is nothing before '{char}' to repeat")
        if char == "\\":
            return Char(self._escape(in_class=False))
        return Char(CharSet.of(char))

    def _group(self) -> Expression:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise RegexError(f"groups are nested deeper than {MAX_DEPTH} levels")
        plain = False
        if self._take("?"):
            plain = self._take(":")
            named = re.compile(r"P?<[A-Za-z_]\w*>").match(self._text, self._at)
            if named:
                self._at = named.end()
            elif not plain:
                raise RegexError("looking ahead or behind is not possible")
        item = self._choice()
        if not self._take(")"):
            raise RegexError("a group is not closed")
        self._depth -= 1
        return item if plain else Group(item)

    def _class(self) -> CharSet:
        negated = self._take("^")
        found = CharSet()
        while not self._take("]"):
            first = self._member()
            if len(first) == 1 and self._text[self._at : self._at + 1] == "-" and self._text[self._at + 1 : self._at + 2] != "]":
                self._at += 1
                last = self._member()
                low = first.ranges[0][0]
                if len(last) != 1 or last.ranges[0][0] < low:
                    raise RegexError("a range of characters is impossible")
                first = CharSet([(low, last.ranges[0][0])])
            found |= first
        return found.complement() if negated else found

    def _member(self) -> CharSet:
        if self._at >= len(self._text):
            raise RegexError("a character class is not closed")
        char = self._text[self._at]
        self._at += 1
        return self._escape(in_class=True) if char == "\\" else CharSet.of(char)

    def _escape(self, *, in_class: bool) -> CharSet:
        char = self._text[self._at : self._at + 1]
        self._at += 1
        if char in _CLASSES:
            return _CLASSES[char]
        if char in _CONTROL and char:
            return CharSet.of(_CONTROL[char])
        if char == "b" and in_class:
            return CharSet.of("\b")
        if char in ("x", "u"):
            digits = re.compile("[0-9A-Fa-f]{2}" if char == "x" else "[0-9A-Fa-f]{4}").match(self._text, self._at)
            if digits:
                self._at = digits.end()
                return CharSet.of(chr(int(digits.group(), 16)))
        if not char or char.isalnum():
            raise RegexError(f"'\\{char}' is not possible")
        return CharSet.of(char)

    def _take(self, text: str) -> bool:
        found = self._text.startswith(text, self._at)
        self._at += len(text) * found
        return found
