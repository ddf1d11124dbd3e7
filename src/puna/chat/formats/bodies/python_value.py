"""A Python literal that arrives in pieces, written as JSON on the way."""

from __future__ import annotations

import json
import re

from puna.chat.formats.json_text import escaped, is_json
from puna.chat.formats.scanner import Scanner

_WORDS = {"True": "true", "False": "false", "None": "null"}
_WORD = re.compile(r"[^\s,\[\](){}:'\"=]+")
_IN_STRING = re.compile(r"[^\\'\"]+")
_HEX = re.compile(r"[0-9a-fA-F]+")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "0": "\0", "\n": ""}
_CODES = {"x": 2, "u": 4, "U": 8}
_CLOSES = {"[": "]", "(": "]", "{": "}"}


class PythonValue:
    """Takes one literal: a string, a number, a list, a dictionary. Words that mean nothing become strings."""

    def __init__(self) -> None:
        self._stack: list[str] = []
        """The JSON brackets that are open, by what closes them."""
        self._quote = ""
        self._quoted = False
        """Whether a quote came within a string that ends it, unless a letter follows."""
        self._escape = ""
        """An escape that is not complete; backslash included."""
        self._high = ""
        """The first half of a pair of surrogates."""
        self._word = ""
        self._comma = False
        """Whether a comma came that nothing has followed yet."""
        self.done = False
        self.guessed = False
        """Whether a word that means nothing was made a string."""

    def read(self, scanner: Scanner) -> str:
        """The next piece of JSON; nothing of what follows the value is taken."""
        parts: list[str] = []
        while not self.done and not scanner.empty:
            parts.append(self._in_string(scanner) if self._quote else self._step(scanner))
        if self._quoted and scanner.ended:
            parts.append(self._behind_quote(scanner))
        return "".join(parts)

    def _step(self, scanner: Scanner) -> str:
        part = scanner.match(_WORD)
        if part:
            self._word += part
            return ""
        if self._word:
            return self._end_of_word()
        char = scanner.peek()
        if char in "])}":
            if not self._stack:
                self.done = True
                return ""
            scanner.char()
            self._comma = False
            return self._closed(self._stack.pop())
        if not self._stack and char == ",":
            self.done = True
            return ""
        scanner.char()
        if char in "'\"":
            self._quote = char
            return self._separated('"')
        if char in _CLOSES:
            opened = self._separated("{" if char == "{" else "[")
            self._stack.append(_CLOSES[char])
            return opened
        if char == ",":
            self._comma = True
        return ": " if char == ":" else ""

    def _separated(self, text: str) -> str:
        comma, self._comma = self._comma, False
        return ", " + text if comma else text

    def _closed(self, text: str) -> str:
        self.done = not self._stack
        return text

    def _end_of_word(self) -> str:
        word, self._word = self._word, ""
        word = _WORDS.get(word, word)
        if not is_json(word):
            word, self.guessed = f'"{escaped(word)}"', True
        return self._closed(self._separated(word))

    def _in_string(self, scanner: Scanner) -> str:
        if self._escape:
            return self._escaped(scanner)
        if self._quoted:
            return self._behind_quote(scanner)
        part = scanner.match(_IN_STRING)
        if part:
            return escaped(part)
        char = scanner.char()
        if char == "\\":
            self._escape = char
            return ""
        if char == self._quote:
            self._quoted = True
            return ""
        return escaped(char)

    def _behind_quote(self, scanner: Scanner) -> str:
        """Templates do not escape quotes: one in the middle of a word is part of the string."""
        self._quoted = False
        quote = self._quote
        if scanner.peek().isalnum():
            return escaped(quote)
        self._quote = ""
        return self._closed('"')

    def _escaped(self, scanner: Scanner) -> str:
        if len(self._escape) == 1:
            char = scanner.char()
            if char in _CODES:
                self._escape += char
                return ""
            self._escape = ""
            return escaped(_ESCAPES.get(char, char if char in "\\'\"" else "\\" + char))
        wanted = _CODES[self._escape[1]] - (len(self._escape) - 2)
        while wanted and not scanner.empty and _HEX.match(scanner.peek()):
            self._escape += scanner.char()
            wanted -= 1
        if wanted and scanner.empty:
            return ""
        text, self._escape = self._escape, ""
        return escaped(text) if wanted else self._code(int(text[2:], 16))

    def _code(self, code: int) -> str:
        high, self._high = self._high, ""
        if 0xD800 <= code < 0xDC00:
            self._high = chr(code)
            return ""
        if 0xDC00 <= code < 0xE000:
            if not high:
                return "\ufffd"
            return (high + chr(code)).encode("utf-16", "surrogatepass").decode("utf-16")
        return escaped(chr(code)) if code <= 0x10FFFF else "\ufffd"


class PythonText:
    """Text that arrives in pieces, and may become one Python literal."""

    def __init__(self) -> None:
        self._scanner = Scanner()
        self._value = PythonValue()

    def feed(self, text: str) -> None:
        """Add the next piece."""
        self._scanner.feed(text)
        self._value.read(self._scanner)
        self._scanner.space()

    @property
    def whole(self) -> bool:
        """Whether it is one now, as far as brackets and quotes tell."""
        return self._value.done and self._scanner.empty and not self._value.guessed


def python_as_json(text: str) -> str | None:
    """A Python literal as JSON; None for what is none, or has no form in JSON."""
    scanner, value = Scanner(), PythonValue()
    scanner.feed(text)
    scanner.end(cut=False)
    found = value.read(scanner)
    scanner.space()
    if not (value.done and scanner.empty) or value.guessed:
        return None
    try:
        json.loads(found)
    except (RecursionError, ValueError):
        return None
    return found
