"""A call in one of two ways of writing: a JSON object, or something else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from puna.chat.formats.description import Body, Reader, Verdict
from puna.chat.formats.emitter import Emitter
from puna.chat.formats.plan import Tool
from puna.chat.formats.scanner import Scanner
from puna.outline import Node


@dataclass(frozen=True)
class Either:
    """Reads both; which one it is its first character tells."""

    json: Body
    other: Body
    written: Body
    """The one of the two that the grammar holds output to."""

    @property
    def opening(self) -> str:
        return self.written.opening

    @property
    def marks(self) -> tuple[str, ...]:
        return (*self.json.marks, *self.other.marks)

    @property
    def closing(self) -> tuple[str, ...]:
        return (*self.json.closing, *self.other.closing)

    def node(self, tool: Tool) -> Node:
        return self.written.node(tool)

    def reader(self, tools: Sequence[Tool], closers: Sequence[str]) -> Reader:
        return _Reader(self, tools, closers)


class _Reader:
    def __init__(self, body: Either, tools: Sequence[Tool], closers: Sequence[str]) -> None:
        self._body, self._tools, self._closers = body, tools, closers
        self._reader: Reader | None = None

    @property
    def held(self) -> str:
        return self._reader.held if self._reader else ""

    def read(self, scanner: Scanner, out: Emitter) -> Verdict:
        if self._reader is None:
            if scanner.empty:
                return "more"
            body = self._body.json if scanner.peek() == "{" else self._body.other
            self._reader = body.reader(self._tools, self._closers)
        return self._reader.read(scanner, out)
