"""A call whose arguments are elements of their own names, objects and lists elements within elements.

<invoke name="get_weather"><city>Paris</city><names><item>a</item><item>b</item></names></invoke>
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from puna.chat.formats.arguments import Kind, json_part, kind_of_schema, resolved
from puna.chat.formats.bodies.bare_string import bare_string, free_text
from puna.chat.formats.bodies.stepped import MAX_NAME, SteppedReader
from puna.chat.formats.bodies.tagged import as_json
from puna.chat.formats.description import Reader, Verdict
from puna.chat.formats.emitter import Emitter
from puna.chat.formats.json_text import MAX_DEPTH, escaped
from puna.chat.formats.plan import Tool
from puna.chat.formats.scanner import Marks, Scanner, marks_of
from puna.chat.formats.shapes import Shape, shape_of
from puna.outline import Branch, Free, Node, Repeat, seq


@dataclass(frozen=True)
class Elements:
    """The texts around the name and at the end, and what every tag begins with."""

    name_begin: str
    name_end: str
    end: str
    tag: str = ""
    """What comes before the bracket of every tag."""
    item: str = "item"
    """The tag of what lists hold."""

    @property
    def opening(self) -> str:
        return self.name_begin

    @property
    def marks(self) -> tuple[str, ...]:
        return (self.tag,)

    @property
    def closing(self) -> tuple[str, ...]:
        return (self.end.strip(),)

    def node(self, tool: Tool) -> Node:
        shape = shape_of(tool)
        if shape is None:
            inner: Node = Repeat(seq(f"{self.tag}<", _free(">", _free(f"{self.tag}</", _free(">", seq())))))
        else:
            inner = self._fields(tool, shape)
        return seq(self.name_begin, tool.name, self.name_end, inner, self.end)

    def _fields(self, tool: Tool, shape: Shape) -> Node:
        items: list[Node] = []
        for key, own, needed in shape.fields:
            item = self._element(tool, key, own)
            items.append(item if needed else Repeat(item, 0, 1))
        return seq(*items)

    def _element(self, tool: Tool, key: str, shape: Shape) -> Node:
        begin, end = f"{self.tag}<{key}>", f"{self.tag}</{key}>"
        if shape.kind == "string":
            return seq(begin, bare_string(tool, key, shape.schema, end))
        if shape.kind == "any":
            return seq(begin, free_text(end))
        if shape.kind == "object":
            return seq(begin, self._fields(tool, shape), end)
        if shape.item is not None:
            return seq(begin, Repeat(self._element(tool, self.item, shape.item), shape.low, shape.high), end)
        return seq(begin, json_part(tool, shape.schema, key), end)

    def reader(self, tools: Sequence[Tool], closers: Sequence[str]) -> Reader:
        return _ElementsReader(self, tools, closers)


def _free(mark: str, then: Node) -> Free:
    return Free((Branch(mark, then),))


@dataclass
class _Level:
    """An element that holds others."""

    kind: Literal["object", "list"]
    schema: Any
    marks: Marks
    close: str
    n: int = 0


class _ElementsReader(SteppedReader):
    """Reads tags, and writes JSON as it goes. Strings are passed on as they come, numbers and the like when they are complete."""

    def __init__(self, body: Elements, tools: Sequence[Tool], closers: Sequence[str]) -> None:
        super().__init__(body.name_begin.strip())
        self._body = body
        self._tools = tools
        self._closers = closers
        self._name_end, self._end = body.name_end.strip(), body.end.strip()
        self._name_marks = marks_of(self._name_end, self._end, *closers)
        self._key_marks = marks_of(">")
        self._open = f"{body.tag}<"
        self._levels: list[_Level] = []
        self._root: Mapping[str, Any] = {}
        self._key = ""
        self._close = ""
        self._schema: Any = None
        self._kind: Kind = "either"
        self._value: list[str] = []

    def _name(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        text, mark = scanner.until(self._name_marks, leave=True)
        self._taken.append(text)
        self._length += len(text)
        if not mark:
            return "broken" if self._length > MAX_NAME else "more"
        name = self.held.strip()
        if len(name.split()) != 1 or mark != self._name_end:
            return "broken"
        scanner.take(mark)
        out.begin(name)
        tool = next((tool for tool in self._tools if tool.name == name), None)
        self._root = tool.parameters if tool else {}
        self._open_level("object", self._root, self._end)
        return None

    def _open_level(self, kind: Literal["object", "list"], schema: Any, close: str) -> None:
        marks = marks_of(close, self._open, *self._closers)
        self._levels.append(_Level(kind, schema, marks, close))
        self._step = self._inner

    def _inner(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        """Between elements. What is none is left out."""
        level = self._levels[-1]
        _, mark = scanner.until(level.marks, leave=True)
        if not mark:
            return "more"
        if mark == level.close:
            scanner.take(mark)
            return self._close_level(out)
        if mark in self._closers:
            while self._close_level(out) is None:
                pass
            return "done"
        scanner.take(mark)
        self._value, self._step = [], self._in_tag
        return None

    def _close_level(self, out: Emitter) -> Verdict | None:
        level = self._levels.pop()
        begin, end = "{}" if level.kind == "object" else "[]"
        out.arguments(end if level.n else begin + end)
        return None if self._levels else "done"

    def _in_tag(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        text, mark = scanner.until(self._key_marks)
        self._value.append(text)
        if not mark:
            return "more"
        self._key = "".join(self._value).strip()
        if self._key.startswith("/"):  # it closes what is not open
            self._step = self._inner
            return None
        level = self._levels[-1]
        level.n += 1
        comma = ", " if level.n > 1 else "{" if level.kind == "object" else "["
        self._schema = resolved(_within(level.schema, level.kind, self._key), self._root)
        self._kind = kind_of_schema(self._schema, self._root)
        key = f"{json.dumps(self._key, ensure_ascii=False)}: " if level.kind == "object" else ""
        out.arguments(comma + key + ('"' if self._kind == "string" else ""))
        self._close = f"{self._body.tag}</{self._key}>"
        self._value, self._step = [], self._in_string if self._kind == "string" else self._before_value
        return None

    def _in_string(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        text, mark = scanner.until(marks_of(self._close))
        out.arguments(escaped(text))
        if not mark:
            return "more"
        out.arguments('"')
        self._step = self._inner
        return None

    def _before_value(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        """Whether elements come, or a value."""
        self._value.append(scanner.space())
        if scanner.empty:
            return "more"
        found = scanner.take_any(marks_of(self._close, self._open))
        if found is None:
            return "more"
        if found == self._close:
            self._end_value(out)
            return None
        if not found or len(self._levels) >= MAX_DEPTH:
            self._value.append(found)
            self._step = self._in_value
            return None
        self._value, self._step = [], self._first_tag
        return None

    def _first_tag(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        text, mark = scanner.until(self._key_marks, leave=True)
        self._value.append(text)
        if not mark:
            return "more"
        declared = self._schema.get("type") if isinstance(self._schema, Mapping) else None
        is_list = declared == "array" or (declared != "object" and "".join(self._value).strip() == self._body.item)
        self._open_level("list" if is_list else "object", self._schema, self._close)
        self._step = self._in_tag
        return None

    def _in_value(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        text, mark = scanner.until(marks_of(self._close))
        self._value.append(text)
        if not mark:
            return "more"
        self._end_value(out)
        return None

    def _end_value(self, out: Emitter) -> None:
        text = "".join(self._value)
        declared = self._schema.get("type") if isinstance(self._schema, Mapping) else None
        empty = {"object": "{}", "array": "[]"}.get(str(declared), "") if not text.strip() else ""
        out.arguments(empty or as_json(text, self._kind))
        self._step = self._inner


def _within(schema: Any, kind: str, key: str) -> Any:
    """The schema of what an object or a list holds."""
    if not isinstance(schema, Mapping):
        return None
    if kind == "list":
        return schema.get("items")
    found = schema.get("properties")
    if isinstance(found, Mapping) and key in found:
        return found[key]
    return schema.get("additionalProperties")
