"""JSON text that arrives in pieces: where a value ends, and strings written on the way."""

from __future__ import annotations

import json
import re

import msgspec

from puna.chat.formats.scanner import Scanner

_IN_STRING = re.compile(r'[^"\\]+')
_IN_SCALAR = re.compile(r"[^\s,\]}\"{\[]+")
_IN_NESTED = re.compile(r'[^"{}\[\]]+')
_ESCAPE = re.compile(r'[\x00-\x1f"\\\x7f]')

MAX_DEPTH = 500
"""How deep values may nest; nobody who reads them takes more."""


def is_json(text: str) -> bool:
    """Whether a word is JSON by its form; a number may be beyond what a float can hold, `NaN` is none."""
    try:
        msgspec.json.decode(text)
    except msgspec.ValidationError:
        return True  # a number out of range
    except msgspec.DecodeError:
        return False
    return True


class JsonValue:
    """Takes one JSON value from the text. It looks at brackets and quotes only: whether all of it is JSON is not its business."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self.begun = False
        """Whether anything of it has come."""
        self.done = False
        """Whether the value is complete."""

    @property
    def in_string(self) -> bool:
        """Whether what comes next is part of a string, or ends one."""
        return self._in_string

    def read(self, scanner: Scanner) -> str:
        """Take the next piece of the value; nothing of what follows it."""
        parts: list[str] = []
        while not self.done and not scanner.empty:
            part = self._step(scanner)
            if part:
                parts.append(part)
        return "".join(parts)

    def _step(self, scanner: Scanner) -> str:
        if self._in_string:
            return self._string(scanner)
        if self._depth and (part := scanner.match(_IN_NESTED)):
            return part
        char = scanner.peek()
        if char == '"':
            self._in_string = self.begun = True
        elif char in "{[":
            self._depth += 1
            self.begun = True
        elif self._depth:  # a closing bracket, of whatever kind
            self._depth -= 1
            self.done = not self._depth
        else:
            part = scanner.match(_IN_SCALAR)
            if part:
                self.begun = True
            else:
                self.done = True  # a blank, a comma or the end of what is around it
            return part
        return scanner.char()

    def _string(self, scanner: Scanner) -> str:
        if self._escaped:
            self._escaped = False
            return scanner.char()
        part = scanner.match(_IN_STRING)
        if part:
            return part
        char = scanner.char()
        if char == "\\":
            self._escaped = True
        else:
            self._in_string = False
            self.done = not self._depth
        return char


def escaped(text: str) -> str:
    """The text as it stands within a JSON string."""
    return _ESCAPE.sub(lambda match: json.dumps(match.group())[1:-1], text)
