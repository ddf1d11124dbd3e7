"""A call as a JSON object that holds the name and the arguments: `{"name": "f", "arguments": {"a": 1}}`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from puna.chat.formats.arguments import arguments
from puna.chat.formats.bodies.stepped import MAX_NAME
from puna.chat.formats.description import Reader, Verdict
from puna.chat.formats.emitter import Emitter
from puna.chat.formats.json_text import JsonValue
from puna.chat.formats.plan import Tool
from puna.chat.formats.scanner import Scanner
from puna.outline import Node, Pattern, seq

_OTHERS = frozenset({"type", "index"})


@dataclass(frozen=True)
class Envelope:
    """The names of its members, in the order in which the grammar has them."""

    name: str = "name"
    arguments: str = "arguments"
    id: str = ""
    """Member that holds the id; the format has none if empty."""
    id_pattern: str = "[a-zA-Z0-9_-]{1,40}"
    id_first: bool = False
    known: bool = False
    """Whether it is a call only if there is a tool of that name, for formats that have no mark for calls."""
    id_counts: bool = False
    """Whether ids only number the calls of a conversation, so that calls get others."""
    layout: tuple[str, str, str] = ("{", ", ", "}")
    """How the object begins, what is between its members, and how it ends, with the blanks that belong there."""
    also: tuple[str, ...] = ("arguments", "parameters")
    """Further names that models give the arguments."""

    @property
    def opening(self) -> str:
        return "{"

    @property
    def marks(self) -> tuple[str, ...]:
        return ()

    @property
    def closing(self) -> tuple[str, ...]:
        return ()

    def node(self, tool: Tool) -> Node:
        identifier: list[Node | str] = []
        if self.id:
            identifier = [f'"{self.id}": "', Pattern(self.id_pattern), '"']
        begin, comma, end = self.layout
        first = [*identifier, comma] if self.id and self.id_first else []
        last = [comma, *identifier] if self.id and not self.id_first else []
        name = json.dumps(tool.name, ensure_ascii=False)
        return seq(begin, *first, f'"{self.name}": {name}{comma}"{self.arguments}": ', arguments(tool), *last, end)

    def reader(self, tools: Sequence[Tool], closers: Sequence[str]) -> Reader:
        return _EnvelopeReader(self, {tool.name for tool in tools} if self.known else None)


class _EnvelopeReader:
    """Walks over the object's members. Arguments are passed on as they come, once the name is known."""

    def __init__(self, envelope: Envelope, tools: Set[str] | None) -> None:
        self._tools = tools
        self._names = {envelope.name}
        self._arguments = {envelope.arguments, *envelope.also}
        self._ids = {envelope.id, "id"} - {""}
        self._id_counts = envelope.id_counts
        self._known = self._names | self._arguments | self._ids | _OTHERS
        self._taken: list[str] = []
        self._step: Callable[[Scanner, Emitter], Verdict | None] = self._open
        self._key = ""
        self._value = JsonValue()
        self._text: list[str] = []
        """The key, or the value where it is not passed on as it comes."""
        self._length = 0
        self._name = ""
        self._id: str | None = None
        self._begun = False
        self._early = ""
        """Arguments that came before the name."""

    @property
    def held(self) -> str:
        return "".join(self._taken)

    def read(self, scanner: Scanner, out: Emitter) -> Verdict:
        while not scanner.empty:
            verdict = self._step(scanner, out)
            if verdict is not None:
                return verdict
        return "more"

    def _take(self, text: str) -> str:
        if not self._begun and text:
            self._taken.append(text)
        return text

    def _go(self, step: Callable[[Scanner, Emitter], Verdict | None]) -> None:
        self._step = step
        self._value, self._text, self._length = JsonValue(), [], 0

    def _mark(self, scanner: Scanner, marks: str) -> str:
        """Take one of some characters after blanks; empty if another one comes, or none yet."""
        self._take(scanner.space())
        return self._take(scanner.char()) if not scanner.empty and scanner.peek() in marks else ""

    def _open(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        if not self._mark(scanner, "{"):
            return None if scanner.empty else "broken"
        self._go(self._before_key)
        return None

    def _before_key(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        self._take(scanner.space())
        if not scanner.empty:
            if scanner.peek() != '"':
                return "broken"
            self._go(self._in_key)
        return None

    def _in_key(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        self._add(scanner)
        if not self._value.done:
            return "broken" if self._length > MAX_NAME else None
        self._key = decoded("".join(self._text))
        if self._key not in self._known:
            return "broken"
        self._go(self._colon)
        return None

    def _colon(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        if not self._mark(scanner, ":"):
            return None if scanner.empty else "broken"
        self._go(self._before_value)
        return None

    def _before_value(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        self._take(scanner.space())
        if scanner.empty:
            return None
        if self._key in self._arguments and self._name and scanner.peek() != '"':
            self._begin(out)
            self._go(self._in_arguments)
        else:
            self._go(self._in_value)
        return None

    def _in_arguments(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        out.arguments(self._value.read(scanner))
        if self._value.done:
            self._go(self._after_value)
        return None

    def _in_value(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        self._add(scanner)
        if not self._value.done:
            return "broken" if self._key not in self._arguments and self._length > MAX_NAME else None
        text = "".join(self._text)
        if self._key in self._names:
            self._name = decoded(text)
            if not self._name or (self._tools is not None and self._name not in self._tools):
                return "broken"
        elif self._key in self._ids:
            self._id = None if self._id_counts else decoded(text) or None
        elif self._key in self._arguments:
            self._early = decoded(text) or text
        self._go(self._after_value)
        return None

    def _after_value(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        mark = self._mark(scanner, ",}")
        if mark == ",":
            self._go(self._before_key)
        elif mark:
            if not self._name:
                return "broken"
            self._begin(out)
            return "done"
        elif not scanner.empty:
            if self._name and self._early:
                self._begin(out)
            return "broken"
        return None

    def _add(self, scanner: Scanner) -> None:
        piece = self._take(self._value.read(scanner))
        self._text.append(piece)
        self._length += len(piece)

    def _begin(self, out: Emitter) -> None:
        if not self._begun:
            self._begun = True
            out.begin(self._name, self._id)
            out.arguments(self._early)


def decoded(text: str) -> str:
    """The string that a JSON string stands for; empty for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return value if isinstance(value, str) else ""
