"""A value with quotes of the format's own that arrives in pieces, written as JSON on the way."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from puna.chat.formats.json_text import JsonValue, escaped, is_json
from puna.chat.formats.scanner import Scanner, marks_of

_WORDS = {"True": "true", "False": "false", "None": "null"}


class QuotedValue:
    """Takes one object, list or string. JSON's own quotes are taken, too; words that mean nothing become strings."""

    def __init__(self, quote: str, closers: Sequence[str] = ()) -> None:
        """`closers` are the marks that may follow the value: it is broken where one comes earlier."""
        self._closers = closers
        self._quote = marks_of(quote)
        self._word_marks = marks_of(",", "}", "]", quote, *closers)
        self._key_marks = marks_of(":", "}", quote, *closers)
        self._stack: list[str] = []
        """The brackets that are open, by what closes them."""
        self._parts: list[str] = []
        self._word: list[str] = []
        self._fresh = True
        """Whether nothing is in the bracket that was opened last."""
        self._json = JsonValue()
        self._is_key = False
        self._step: Callable[[Scanner], bool] = self._value
        self.done = False
        self.broken = False

    def read(self, scanner: Scanner) -> str:
        """The next piece of JSON; nothing of what follows the value is taken."""
        while not (self.done or self.broken) and self._step(scanner):
            pass
        parts, self._parts = self._parts, []
        return "".join(parts)

    def _go(self, step: Callable[[Scanner], bool]) -> bool:
        self._step = step
        return True

    def _separate(self) -> None:
        if not self._fresh:
            self._parts.append(", ")
        self._fresh = False

    def _breaks(self, mark: str) -> bool:
        self.broken = mark in self._closers
        return self.broken

    def _next(self) -> bool:
        """A value is complete."""
        self.done = not self._stack
        return self._go(self._key if self._stack and self._stack[-1] == "}" else self._item)

    def _blank(self, scanner: Scanner) -> bool:
        """Take blanks and commas; whether anything is behind them."""
        scanner.space()
        while not scanner.empty and scanner.peek() == ",":
            scanner.char()
            scanner.space()
        return not scanner.empty

    def _item(self, scanner: Scanner) -> bool:
        """The next item of a list, or its end."""
        if not self._blank(scanner):
            return False
        if scanner.peek() in "]}":
            return self._close(scanner)
        self._separate()
        return self._go(self._value)

    def _close(self, scanner: Scanner) -> bool:
        scanner.char()
        self._parts.append(self._stack.pop())
        self._fresh = False
        return self._next()

    def _key(self, scanner: Scanner) -> bool:
        """The next key of an object, or its end."""
        if not self._blank(scanner):
            return False
        if scanner.peek() in "]}":
            return self._close(scanner)
        found = scanner.take_any(self._quote)
        if found is None:
            return False
        self._is_key = True
        if found:
            self._separate()
            self._parts.append('"')
            return self._go(self._in_string)
        if scanner.peek() == '"':
            self._separate()
            self._json = JsonValue()
            return self._go(self._in_json)
        self._word = []
        return self._go(self._in_key)

    def _in_key(self, scanner: Scanner) -> bool:
        text, mark = scanner.until(self._key_marks, leave=True)
        self._word.append(text)
        if not mark or self._breaks(mark):
            return False
        self._separate()
        self._parts.append(json.dumps("".join(self._word).strip(), ensure_ascii=False))
        return self._go(self._colon)

    def _colon(self, scanner: Scanner) -> bool:
        self._is_key = False
        scanner.space()
        if scanner.empty:
            return False
        if scanner.peek() == ":":
            scanner.char()
        self._parts.append(": ")
        return self._go(self._value)

    def _value(self, scanner: Scanner) -> bool:
        scanner.space()
        if scanner.empty:
            return False
        found = scanner.take_any(self._quote)
        if found is None:
            return False
        char = scanner.peek()
        if found:
            self._parts.append('"')
            return self._go(self._in_string)
        if char == '"':
            self._json = JsonValue()
            return self._go(self._in_json)
        if char in "{[":
            scanner.char()
            self._parts.append(char)
            self._stack.append("}" if char == "{" else "]")
            self._fresh = True
            return self._go(self._key if char == "{" else self._item)
        self._word = []
        return self._go(self._in_word)

    def _in_string(self, scanner: Scanner) -> bool:
        text, mark = scanner.until(self._quote)
        self._parts.append(escaped(text))
        if not mark:
            return False
        self._parts.append('"')
        return self._go(self._colon) if self._is_key else self._next()

    def _in_json(self, scanner: Scanner) -> bool:
        self._parts.append(self._json.read(scanner))
        if not self._json.done:
            return False
        return self._go(self._colon) if self._is_key else self._next()

    def _in_word(self, scanner: Scanner) -> bool:
        text, mark = scanner.until(self._word_marks, leave=True)
        self._word.append(text)
        if not mark or self._breaks(mark):
            return False
        word = "".join(self._word).strip()
        word = _WORDS.get(word, word)
        if not is_json(word):
            word = f'"{escaped(word)}"'
        self._parts.append(word)
        return self._next()
