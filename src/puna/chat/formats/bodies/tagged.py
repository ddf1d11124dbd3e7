"""A call as its name and each argument between tags, strings without quotes.

<function=get_weather>
<parameter=city>
Paris
</parameter>
</function>
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from puna.chat.formats.arguments import JSON_TYPES, Kind, argument, kind_of, properties, required, resolved, types_of
from puna.chat.formats.bodies.bare_string import bare_string, free_text
from puna.chat.formats.bodies.python_value import PythonText, python_as_json
from puna.chat.formats.bodies.stepped import MAX_NAME, SteppedReader
from puna.chat.formats.description import Reader, Verdict
from puna.chat.formats.emitter import Emitter
from puna.chat.formats.json_text import JsonValue, escaped
from puna.chat.formats.plan import Tool
from puna.chat.formats.scanner import Scanner, marks_of
from puna.outline import Branch, Free, Node, Repeat, alt, seq

_PYTHON = {"True": "true", "False": "false", "None": "null"}


@dataclass(frozen=True)
class Tagged:
    """The texts around name, keys and values. A line end next to a value belongs to the format if the texts have one there."""

    name_begin: str
    """Before the name."""
    name_end: str
    """Behind it; nothing but blanks if what follows tells the end."""
    key_begin: str
    key_end: str
    """Between key and value, of strings if `json_key_end` is there."""
    value_end: str
    end: str = ""
    """Behind the last argument; empty if the call's own closing mark is all there is."""
    json_key_end: str = ""
    """Between key and value of what is no string, in formats that say which it is."""
    value_begin: str = ""
    """What opens a value, where blanks or attributes may lie between it and the text behind the key."""
    type_begin: str = ""
    """What comes before the value's JSON type among those attributes, in formats that say it. A quote follows the type."""
    quotes: tuple[str, str] = ("", "")
    """What may be around a string, and is where the string holds what ends values."""
    name_more: Node | None = None
    """What lies between the text behind the name and the end of that tag, if anything does."""
    name_close: str = ""
    """The end of that tag, where something lies before it."""

    @property
    def opening(self) -> str:
        return self.name_begin

    @property
    def marks(self) -> tuple[str, ...]:
        texts = (self.name_begin, self.name_close, self.key_begin, self.key_end, self.json_key_end, self.value_begin)
        return (*texts, self.value_end, self.end)

    @property
    def closing(self) -> tuple[str, ...]:
        return (self.value_end.strip(), self.end.strip())

    def node(self, tool: Tool) -> Node:
        more = self.name_more or seq()
        return seq(self.name_begin, tool.name, self.name_end, more, self.name_close, self._arguments(tool), self.end)

    def _arguments(self, tool: Tool) -> Node:
        named = properties(tool)
        if named is None:
            heads = dict((self._head(JSON_TYPES), self._head(("string", *JSON_TYPES))))
            return Repeat(
                seq(
                    self.key_begin,
                    Free(
                        tuple(
                            Branch(end, seq(head, free_text(self.value_end, quotes=self.quotes))) for end, head in heads.items()
                        )
                    ),
                )
            )
        needed = required(tool)
        items: list[Node] = []
        for key, schema in named.items():
            item = self._argument(tool, key, schema)
            items.append(item if key in needed else Repeat(item, 0, 1))
        return seq(*items)

    def _head(self, types: Sequence[str]) -> tuple[str, Node]:
        """The text behind a key whose value is of one of some JSON types, and what comes between that and the value."""
        if self.type_begin:
            return self.key_end, seq(self.type_begin, alt([seq(name) for name in types]), '"', self.value_begin)
        end = self.key_end if "string" in types or not self.json_key_end else self.json_key_end
        return end, seq(self.value_begin)

    def _argument(self, tool: Tool, key: str, schema: Any) -> Node:
        kind = kind_of(tool, key)
        as_json = seq(self.key_begin, key, *self._head(types_of(tool, key)), argument(tool, key), self.value_end)
        if kind == "json":
            return as_json
        as_text = self._string(tool, key, schema)
        return alt([as_text, as_json]) if kind == "either" and (self.json_key_end or self.type_begin) else as_text

    def _string(self, tool: Tool, key: str, schema: Any) -> Node:
        return seq(
            self.key_begin,
            key,
            *self._head(("string",)),
            bare_string(tool, key, resolved(schema, tool.parameters), self.value_end, quotes=self.quotes),
        )

    def reader(self, tools: Sequence[Tool], closers: Sequence[str]) -> Reader:
        return _TaggedReader(self, tools, closers)


def _tail(text: str) -> str:
    """The blanks at a text's end."""
    return text[len(text.rstrip()) :]


class _TaggedReader(SteppedReader):
    """Reads tags, and writes JSON as it goes. Strings are passed on as they come, all else when it is complete."""

    def __init__(self, body: Tagged, tools: Sequence[Tool], closers: Sequence[str]) -> None:
        super().__init__(body.name_begin.strip())
        self._tools = tools
        self._name_end = body.name_end.strip()
        self._key_begin, self._end = body.key_begin.strip(), body.end.strip()
        self._json_end = body.json_key_end.strip()
        inner = [self._key_begin, self._end, *closers]
        self._name_marks = marks_of(self._name_end, *inner)
        self._inner_marks = marks_of(*inner)
        self._key_marks = marks_of(body.key_end.strip(), self._json_end)
        self._name_close, self._value_begin = body.name_close.strip(), body.value_begin.strip()
        self._more_marks = marks_of(self._name_close, *inner)
        self._type_begin = body.type_begin.strip()
        self._head_marks = marks_of(self._value_begin, body.value_end.strip(), *inner)
        self._value_marks = marks_of(body.value_end.strip())
        self._quote, self._unquote = body.quotes[0], marks_of(body.quotes[1])
        self._lead = "\n" if (body.value_begin or body.key_end).endswith("\n") else ""
        self._trail = "\n" if body.value_end.startswith("\n") else ""
        self._tool: Tool | None = None
        self._n = 0
        self._key = ""
        self._kind: Kind = "string"
        self._value: list[str] = []
        self._json = JsonValue()
        self._literal = PythonText()
        self._n_seen = 0
        """Parts of the value that were taken for a Python literal's."""
        self._fresh = False
        """Whether nothing of the value has come."""
        self._line_end = ""
        """A line end that is the value's or the format's."""

    def _name(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        text, mark = scanner.until(self._name_marks, leave=True)
        self._taken.append(text)
        self._length += len(text)
        if not mark:
            return "broken" if self._length > MAX_NAME else "more"
        name = self.held.strip()
        if len(name.split()) != 1 or (self._name_end and mark not in (self._name_end, self._key_begin)):
            return "broken"
        if mark == self._name_end:
            scanner.take(mark)
        self._tool = next((tool for tool in self._tools if tool.name == name), None)
        out.begin(name)
        self._step = self._name_tail if self._name_close else self._inner
        return None

    def _name_tail(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        """The rest of the tag that holds the name; nothing in it counts."""
        _, mark = scanner.until(self._more_marks, leave=True)
        if not mark:
            return "more"
        if mark == self._name_close:
            scanner.take(mark)
        self._step = self._inner
        return None

    def _inner(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        """Between arguments. What is none is left out."""
        _, mark = scanner.until(self._inner_marks, leave=True)
        if not mark:
            return "more"
        if mark == self._key_begin:
            scanner.take(mark)
            self._value, self._step = [], self._in_key
            return None
        if mark == self._end:
            scanner.take(mark)
        out.arguments("}" if self._n else "{}")
        return "done"

    def _in_key(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        text, mark = scanner.until(self._key_marks)
        self._value.append(text)
        if not mark:
            return "more"
        self._key = "".join(self._value).strip()
        self._value = []
        self._kind = kind_of(self._tool, self._key)
        if self._json_end:
            self._kind = "json" if mark == self._json_end else "string"
        if self._value_begin:
            self._step = self._behind_key
        else:
            self._begin_value(out)
        return None

    def _behind_key(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        """Attributes, up to what opens the value. Without that, what is there is the value."""
        text, mark = scanner.until(self._head_marks)
        self._value.append(text)
        if not mark:
            return "more"
        text = "".join(self._value)
        if mark != self._value_begin:
            self._begin_value(out)
            self._end_value(text.strip(), out)
            return None
        if self._type_begin and (found := text.partition(self._type_begin)[2].partition('"')[0]):
            self._kind = "string" if found == "string" else "json"
        self._begin_value(out)
        return None

    def _begin_value(self, out: Emitter) -> None:
        self._n += 1
        out.arguments(f"{'{' if self._n == 1 else ', '}{json.dumps(self._key, ensure_ascii=False)}: ")
        if self._kind == "string":
            out.arguments('"')
        self._value, self._json = [], JsonValue()
        self._literal, self._n_seen = PythonText(), 0
        self._fresh, self._line_end = True, ""
        self._step = self._quoted_or_not if self._quote else self._in_value

    def _quoted_or_not(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        taken = scanner.take(self._quote)
        if taken is None:
            return "more"
        if taken and self._kind == "either":
            self._kind = "string"
            out.arguments('"')
        self._step = self._quoted if taken else self._in_value
        return None

    def _quoted(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        text, mark = scanner.until(self._unquote)
        if self._kind == "string":
            out.arguments(escaped(text))
        else:
            self._value.append(text)
        if not mark:
            return "more"
        self._step = self._behind_quoted
        return None

    def _behind_quoted(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        _, mark = scanner.until(self._value_marks)
        if not mark:
            return "more"
        self._end_value("".join(self._value), out)
        return None

    def _in_value(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        text, mark = scanner.until(self._value_marks)
        if text and self._fresh:
            self._fresh = False
            text = text.removeprefix(self._lead)
        text = self._line_end + text
        self._line_end = self._trail if self._trail and text.endswith(self._trail) else ""
        text = text[: len(text) - len(self._line_end)]
        if self._kind == "string":
            out.arguments(escaped(text))
        else:
            self._value.append(text)
            if self._in_string(text) and mark and not self._is_literal():
                self._value.append(self._line_end + mark)
                self._line_end = ""
                self._in_string(mark)
                return None
        if not mark:
            return "more"
        self._end_value("".join(self._value) if self._kind != "string" else "", out)
        return None

    def _end_value(self, rest: str, out: Emitter) -> None:
        out.arguments(escaped(rest) + '"' if self._kind == "string" else as_json(rest, self._kind))
        self._step = self._inner

    def _in_string(self, text: str) -> bool:
        """Take more of a value that is to be JSON; whether it ends within a string of an object or a list."""
        scanner = Scanner()
        scanner.feed(text if self._json.begun else text.lstrip())
        self._json.read(scanner)
        return self._json.in_string

    def _is_literal(self) -> bool:
        """Whether the value so far is a Python literal. What has been looked at is not looked at again."""
        self._literal.feed("".join(self._value[self._n_seen :]))
        self._n_seen = len(self._value)
        return self._literal.whole and python_as_json("".join(self._value).strip()) is not None


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def as_json(text: str, kind: Kind) -> str:
    """A value written without quotes as JSON: what it says if that is JSON, else a string."""
    stripped = text.strip()
    stripped = _PYTHON.get(stripped, stripped)
    try:
        value = json.loads(stripped, parse_constant=_refuse)
    except (RecursionError, ValueError):
        literal = python_as_json(stripped) if stripped.startswith(("[", "{", "(")) else None
        return literal or json.dumps(text if kind == "either" else stripped, ensure_ascii=False)
    if kind == "either" and isinstance(value, str):
        return json.dumps(text, ensure_ascii=False)
    return stripped
