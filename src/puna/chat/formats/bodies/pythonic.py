"""A call as Python writes one: `get_weather(city="Paris", days=2)`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from puna.chat.formats.arguments import argument, kind_of, properties, required, schema_of
from puna.chat.formats.bodies.python_value import PythonValue
from puna.chat.formats.bodies.stepped import MAX_NAME
from puna.chat.formats.description import Reader, Verdict
from puna.chat.formats.emitter import Emitter
from puna.chat.formats.plan import Tool
from puna.chat.formats.scanner import Scanner
from puna.outline import Node, Repeat, alt, seq

_NAME = re.compile(r"[\w.-]+")
_KEY = re.compile(r"\w+")


@dataclass(frozen=True)
class Pythonic:
    """Keyword arguments in brackets."""

    suffix: str = ""
    """What stands behind the name and is no part of it."""
    known: bool = False
    """Whether it is a call only if there is a tool of that name."""

    @property
    def opening(self) -> str:
        return ""

    @property
    def marks(self) -> tuple[str, ...]:
        return ()

    @property
    def closing(self) -> tuple[str, ...]:
        return ()

    def node(self, tool: Tool) -> Node:
        named = properties(tool) or {}
        needed = [_argument(tool, key) for key in named if key in required(tool)]
        others = [_argument(tool, key) for key in named if key not in required(tool)]
        inner: list[Node | str] = []
        for item in needed:
            inner += [", ", item] if inner else [item]
        behind = [Repeat(seq(", ", item), 0, 1) for item in others]
        if inner or not others:
            rest = seq(*inner, *behind)
        else:
            first = alt([seq(item, *behind[place + 1 :]) for place, item in enumerate(others)])
            rest = Repeat(first, 0, 1)
        return seq(f"{tool.name}{self.suffix}(", rest, ")")

    def reader(self, tools: Sequence[Tool], closers: Sequence[str]) -> Reader:
        return PythonicReader(self, tools)


def _argument(tool: Tool, key: str) -> Node:
    schema = schema_of(tool)["properties"][key]
    if kind_of(tool, key) == "json" and isinstance(schema, dict) and schema.get("type") == "boolean":
        return seq(f"{key}=", alt([seq("True"), seq("False")]))
    return seq(f"{key}=", argument(tool, key))


class PythonicReader:
    """Reads a call, and writes its arguments as JSON as they come. Arguments without a name have the next name of the schema."""

    def __init__(self, body: Pythonic, tools: Sequence[Tool]) -> None:
        self._body = body
        self._tools = {tool.name: tool for tool in tools}
        self._keys: list[str] = []
        self._taken: list[str] = []
        self._name = ""
        self._key = ""
        self._n = 0
        self._value, self._empty = PythonValue(), True
        self._step: Callable[[Scanner, Emitter], Verdict | None] = self._in_name

    @property
    def held(self) -> str:
        return "".join(self._taken)

    def read(self, scanner: Scanner, out: Emitter) -> Verdict:
        while not scanner.empty:
            verdict = self._step(scanner, out)
            if verdict is not None:
                return verdict
        return "more"

    def _in_name(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        if not self._name:
            self._taken.append(scanner.space())
        part = scanner.match(_NAME)
        self._name += part
        self._taken.append(part)
        if scanner.empty:
            known = not self._body.known or any((name + self._body.suffix).startswith(self._name) for name in self._tools)
            return None if known and len(self._name) <= MAX_NAME else "broken"
        name = self._name.removesuffix(self._body.suffix)
        if (
            scanner.peek() != "("
            or name + self._body.suffix != self._name
            or not name
            or (self._body.known and name not in self._tools)
        ):
            return "broken"
        scanner.char()
        self._keys = list(properties(self._tools[name]) or ()) if name in self._tools else []
        out.begin(name)
        self._step = self._before_key
        return None

    def _before_key(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        scanner.space()
        if scanner.empty:
            return None
        char = scanner.peek()
        if char == ",":
            scanner.char()
        elif char == ")":
            scanner.char()
            out.arguments("}" if self._n else "{}")
            return "done"
        else:
            self._key = ""
            self._step = self._in_key
        return None

    def _in_key(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        self._key += scanner.match(_KEY)
        scanner.space()
        if scanner.empty:
            return None
        self._value, self._empty = PythonValue(), True
        if scanner.peek() == "=":
            scanner.char()
        elif not self._key and scanner.peek() in "]}":
            return "broken"
        else:  # no name
            word = Scanner()
            word.feed(self._key)
            self._value.read(word)
            self._key = next((key for key in self._keys[self._n :]), f"arg{self._n}")
        out.arguments(f"{'{' if not self._n else ', '}{json.dumps(self._key, ensure_ascii=False)}: ")
        self._n += 1
        self._step = self._in_value
        return None

    def _in_value(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        text = self._value.read(scanner)
        self._empty = self._empty and not text
        if self._value.done:
            text = text or ("null" if self._empty else "")
        out.arguments(text)
        if self._value.done:
            self._step = self._before_key
        return None
