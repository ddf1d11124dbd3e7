"""A call as its name and an object whose keys have no quotes and whose strings have quotes of the format's own.

call:get_weather{city:<|"|>Paris<|"|>,days:2}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from puna.chat.formats.arguments import arguments, json_part
from puna.chat.formats.bodies.bare_string import bare_string, free_text
from puna.chat.formats.bodies.quoted_value import QuotedValue
from puna.chat.formats.bodies.stepped import MAX_NAME, SteppedReader
from puna.chat.formats.description import Reader, Verdict
from puna.chat.formats.emitter import Emitter
from puna.chat.formats.plan import Tool
from puna.chat.formats.scanner import Scanner, marks_of
from puna.chat.formats.shapes import Shape, shape_of
from puna.outline import Node, Repeat, alt, seq


@dataclass(frozen=True)
class Quoted:
    """What comes before the name, and the quote."""

    before: str
    quote: str

    @property
    def opening(self) -> str:
        return self.before

    @property
    def marks(self) -> tuple[str, ...]:
        return (self.quote,)

    @property
    def closing(self) -> tuple[str, ...]:
        return ()

    def node(self, tool: Tool) -> Node:
        shape = shape_of(tool)
        return seq(self.before, tool.name, arguments(tool) if shape is None else self._object(tool, shape))

    def _object(self, tool: Tool, shape: Shape) -> Node:
        """Its members in the order of their names."""
        members = [
            (seq(f"{key}:", self._value(tool, key, own)), needed)
            for key, own, needed in sorted(shape.fields, key=lambda field: field[0].lower())
        ]
        behind: Node = seq()  # what may follow a member
        whole: Node = seq()  # the same where none came before
        for member, needed in reversed(members):
            first = seq(member, behind)
            whole = first if needed else alt([first, whole])
            behind = seq(",", first) if needed else seq(Repeat(seq(",", member), 0, 1), behind)
        return seq("{", whole, "}")

    def _value(self, tool: Tool, key: str, shape: Shape) -> Node:
        if shape.kind == "string":
            return seq(self.quote, bare_string(tool, key, shape.schema, self.quote))
        if shape.kind == "any":
            return alt([seq(self.quote, free_text(self.quote)), json_part(tool, shape.schema, key)])
        if shape.kind == "object":
            return self._object(tool, shape)
        if shape.item is None:
            return json_part(tool, shape.schema, key)
        if shape.high == 0:
            return seq("[]")
        item = self._value(tool, key, shape.item)
        high = None if shape.high is None else shape.high - 1
        some = seq(item, Repeat(seq(",", item), max(shape.low - 1, 0), high))
        return seq("[", some if shape.low else Repeat(some, 0, 1), "]")

    def reader(self, tools: Sequence[Tool], closers: Sequence[str]) -> Reader:
        return _QuotedReader(self, closers)


class _QuotedReader(SteppedReader):
    def __init__(self, body: Quoted, closers: Sequence[str]) -> None:
        super().__init__(body.before.strip())
        self._marks = marks_of("{", *closers)
        self._value = QuotedValue(body.quote, closers)

    def _name(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        text, mark = scanner.until(self._marks, leave=True)
        self._taken.append(text)
        self._length += len(text)
        name = self.held.strip()
        if not mark:
            return "broken" if self._length > MAX_NAME else "more"
        if mark != "{" or len(name.split()) != 1:
            return "broken"
        out.begin(name)
        self._step = self._arguments
        return None

    def _arguments(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        out.arguments(self._value.read(scanner))
        if self._value.broken:
            return "broken"
        return "done" if self._value.done else "more"
