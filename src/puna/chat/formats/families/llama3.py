"""Llama 3.1, 3.2 and 3.3: an object that is all of the answer, or a call of a built-in tool.

{"name": "get_weather", "parameters": {"city": "Paris"}}
<|python_tag|>brave_search.call(query="weather in Paris")

The tag may precede an object too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from puna.chat.formats.bodies.envelope import Envelope
from puna.chat.formats.bodies.pythonic import Pythonic
from puna.chat.formats.description import Calls, Description, Reader, Verdict
from puna.chat.formats.emitter import Emitter
from puna.chat.formats.plan import Tool
from puna.chat.formats.scanner import Scanner
from puna.outline import Node

_OBJECT = Envelope(arguments="parameters", known=True)
_BUILT_IN = Pythonic(suffix=".call", known=True)


@dataclass(frozen=True)
class _ObjectOrCall:
    """Reads either; the grammar has objects only."""

    opening: str = "{"
    marks: tuple[str, ...] = ()
    closing: tuple[str, ...] = ()

    def node(self, tool: Tool) -> Node:
        return _OBJECT.node(tool)

    def reader(self, tools: Sequence[Tool], closers: Sequence[str]) -> Reader:
        return _Reader(tools, closers)


class _Reader:
    def __init__(self, tools: Sequence[Tool], closers: Sequence[str]) -> None:
        self._tools, self._closers = tools, closers
        self._reader: Reader | None = None

    @property
    def held(self) -> str:
        return self._reader.held if self._reader else ""

    def read(self, scanner: Scanner, out: Emitter) -> Verdict:
        if self._reader is None:
            if scanner.empty:
                return "more"
            body = _OBJECT if scanner.peek() == "{" else _BUILT_IN
            self._reader = body.reader(self._tools, self._closers)
        return self._reader.read(scanner, out)


LLAMA3 = Description(
    name="llama3",
    calls=Calls(body=_ObjectOrCall(), bare=True, between="; ", parallel=False, trigger='{"name": "'),
    dropped=("<|python_tag|>",),
)
