"""Regular expressions as JSON Schema writes them (ECMAScript) in the constraint engine's syntax (Rust's). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from puna.grammar.charset import CharSet, escape

_HEX4 = re.compile(r"\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{4})")
_CLASS_ESCAPES = frozenset("dDwWsS")
_CONTROL = {"n": "\\n", "r": "\\r", "t": "\\t", "f": "\\x{C}", "v": "\\x{B}", "0": "\\x{0}"}


_UNUSED = "\\x{1}"
"""Left out of every negated class. From one with all control characters the engine concludes that quotes and backslashes are
in it, and lets strings hold them."""


class PatternError(ValueError):
    """An expression that cannot be enforced; says why."""


def translate(pattern: str) -> str:
    """The same expression for the engine. Raises `PatternError` for what it has nothing for."""
    return _Translator(pattern).run()


class _Translator:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def run(self) -> str:
        found: list[str] = []
        while self._at < len(self._text):
            found.append(self._next())
        return "".join(found)

    def _next(self) -> str:
        char = self._text[self._at]
        self._at += 1
        if char == "\\":
            return self._escape(in_class=False)
        if char == "[":
            return self._class()
        if char == "(":
            return self._group()
        if char == "{" and not re.compile(r"[0-9]+(,[0-9]*)?\}").match(self._text, self._at):
            return "\\{"
        if char == "}" and not self._closes():
            return "\\}"
        if char == "]":
            return "\\]"
        return char

    def _closes(self) -> bool:
        """Whether the brace before ends a repetition."""
        start = self._text.rfind("{", 0, self._at)
        return start >= 0 and re.fullmatch(r"\{[0-9]+(,[0-9]*)?\}", self._text[start : self._at]) is not None

    def _group(self) -> str:
        if self._text.startswith(("?=", "?!", "?<=", "?<!"), self._at):
            raise PatternError("it looks ahead or behind")
        named = re.compile(r"\?P?<([A-Za-z_$][A-Za-z0-9_$]*)>").match(self._text, self._at)
        if named:
            self._at = named.end()
            return "(?:"
        return "("

    def _class(self) -> str:
        start = "["
        if self._text.startswith("^", self._at):
            self._at += 1
            start = "[^"
        found: list[str] = []
        while True:
            if self._at >= len(self._text):
                raise PatternError("a character class is not closed")
            char = self._text[self._at]
            self._at += 1
            if char == "]":
                break
            if char == "\\":
                found.append(self._escape(in_class=True))
            elif char == "-":
                found.append(self._hyphen(found))
            elif char in "[&~^":
                found.append("\\" + char)
            else:
                found.append(char)
        if not found:  # in ECMAScript [] matches nothing, and [^] everything
            return "[^\\x{0}-\\x{10FFFF}]" if start == "[" else "[\\x{0}-\\x{10FFFF}]"
        if start == "[^":
            found.append(_UNUSED)
        return start + "".join(found) + "]"

    def _hyphen(self, before: list[str]) -> str:
        """A hyphen in a class makes a range only between two characters."""
        at_edge = not before or self._text.startswith("]", self._at)
        beside_class = (bool(before) and before[-1][:1] == "\\" and before[-1][1:2] in _CLASS_ESCAPES) or bool(
            re.compile(r"\\[dDwWsS]").match(self._text, self._at)
        )
        after_range = len(before) >= 3 and before[-2] == "-"
        return "\\-" if at_edge or beside_class or after_range else "-"

    def _escape(self, *, in_class: bool) -> str:
        if self._at >= len(self._text):
            raise PatternError("it ends with a backslash")
        char = self._text[self._at]
        self._at += 1
        if char == "u":
            return self._unicode()
        if char == "c" and self._text[self._at : self._at + 1].isalpha():
            self._at += 1
            return f"\\x{{{ord(self._text[self._at - 1]) % 32:X}}}"
        if char in _CONTROL:
            return _CONTROL[char]
        if char == "b" and in_class:
            return "\\x{8}"
        if char in _CLASS_ESCAPES or char in "xpP":
            return "\\" + char
        if char in "bB":
            raise PatternError("it looks at word boundaries")
        if char.isdecimal() or char == "k":
            raise PatternError("it refers back to a group")
        if char in "AzZ" and not in_class:
            return {"A": "^", "z": "$", "Z": "$"}[char]
        if char.isascii() and char.isalnum():
            return char  # an escape without a meaning stands for the letter
        return f"\\x{{{ord(char):X}}}"

    def _unicode(self) -> str:
        found = _HEX4.match(self._text, self._at)
        if found is None:
            return "u"
        self._at = found.end()
        code = int(found.group(1) or found.group(2), 16)
        if 0xD800 <= code <= 0xDBFF and (low := re.compile(r"\\u([dD][c-fC-F][0-9A-Fa-f]{2})").match(self._text, self._at)):
            self._at = low.end()
            code = 0x10000 + ((code - 0xD800) << 10) + int(low.group(1), 16) - 0xDC00
        if 0xD800 <= code <= 0xDFFF or code > 0x10FFFF:
            raise PatternError("it names half a character")
        return f"\\x{{{code:X}}}"


MAX_TEXT = 100
"""Most characters of a text that `none_of` can leave out."""


class _Node:
    """A prefix of the texts to leave out."""

    def __init__(self) -> None:
        self.next: dict[str, _Node] = {}
        self.is_text = False

    def pattern(self) -> str:
        """Every text but those that are left out from here on."""
        rest = CharSet.of("\x01" + "".join(self.next)).complement().pattern
        options = [rest + "(?s:.*)", *(escape(char) + node.pattern() for char, node in self.next.items())]
        return "(?:" + "|".join(options) + ")" + ("" if self.is_text else "?")


def none_of(texts: Iterable[str]) -> str:
    """An expression for every text but these. Raises `PatternError` for long ones."""
    root = _Node()
    for text in texts:
        if len(text) > MAX_TEXT:
            raise PatternError(f"a text of more than {MAX_TEXT} characters cannot be left out")
        node = root
        for char in text:
            node = node.next.setdefault(char, _Node())
        node.is_text = True
    return "^" + root.pattern() + "$"
