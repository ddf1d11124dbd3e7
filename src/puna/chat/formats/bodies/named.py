"""A call as its name, and the arguments as a JSON object behind it: `get_weather[ARGS]{"city": "Paris"}`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from puna.chat.formats.arguments import arguments
from puna.chat.formats.bodies.stepped import MAX_NAME, SteppedReader
from puna.chat.formats.description import Reader, Verdict
from puna.chat.formats.emitter import Emitter
from puna.chat.formats.json_text import JsonValue
from puna.chat.formats.plan import Tool
from puna.chat.formats.scanner import Scanner, marks_of
from puna.outline import Node, seq


def spell_name(name: str) -> Node:
    """The name and nothing else."""
    return seq(name)


def read_name(text: str) -> tuple[str, str | None]:
    """The same, read."""
    return text, None


@dataclass(frozen=True)
class Named:
    """The texts around name and arguments."""

    before: str = ""
    """Before the name."""
    behind: str = ""
    """Between name and arguments."""
    after: str = ""
    """After the arguments."""
    spell: Callable[[str], Node] = spell_name
    """How a name is written, an id with it where the format has it there."""
    read: Callable[[str], tuple[str, str | None]] = read_name
    """A name and an id out of what is written; an empty name if it is none."""
    extra: tuple[str, ...] = ()
    """Texts within what `spell` writes that may be control tokens."""

    @property
    def opening(self) -> str:
        return self.before

    @property
    def marks(self) -> tuple[str, ...]:
        return (self.before, self.behind, self.after, *self.extra)

    @property
    def closing(self) -> tuple[str, ...]:
        found = (text.strip() for text in (self.before, self.behind, self.after, *self.extra))
        return tuple(text for text in found if text.startswith(("<", "[")))

    def node(self, tool: Tool) -> Node:
        return seq(self.before, self.spell(tool.name), self.behind, arguments(tool), self.after)

    def reader(self, tools: Sequence[Tool], closers: Sequence[str]) -> Reader:
        return _NamedReader(self, closers)


class _NamedReader(SteppedReader):
    def __init__(self, body: Named, closers: Sequence[str]) -> None:
        super().__init__(body.before.strip())
        self._body = body
        self._behind, self._after = body.behind.strip(), body.after.strip()
        self._name_marks = marks_of(self._behind, "{", *closers)
        self._after_marks = marks_of(self._after)
        self._value = JsonValue()

    def _name(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        text, mark = scanner.until(self._name_marks, leave=True)
        self._taken.append(text)
        self._length += len(text)
        if mark:
            name, own_id = self._body.read(self.held.strip())
            if mark in (self._behind, "{") and name and len(name.split()) == 1:
                out.begin(name, own_id)
                scanner.take(self._behind)
                self._step = self._arguments
                return None
            return "broken"
        return "broken" if self._length > MAX_NAME or "\n" in self.held.strip() else "more"

    def _arguments(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        if not self._value.begun:
            scanner.space()
            if scanner.empty:
                return "more"
            if scanner.peek() not in '{"[':
                return "broken"
        out.arguments(self._value.read(scanner))
        if not self._value.done:
            return "more"
        self._step = self._end
        return None

    def _end(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        if not self._after:
            return "done"
        scanner.space()
        return "more" if scanner.take_any(self._after_marks) is None else "done"
