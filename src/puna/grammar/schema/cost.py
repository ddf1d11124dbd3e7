"""How much work it is for the engine to combine the parts of a rewritten schema. Pure.

It writes out every way in which options go together, and finds out how many there are by doing so.
"""

from __future__ import annotations

from typing import Any

from puna.grammar.schema.document import TooCostly
from puna.grammar.schema.values import parts_of

MAX_COST = 400_000
"""Parts that are combined, all combinations counted: about a second of work for the engine."""

_ENDLESS = 10**12


def check_cost(schema: dict[str, Any]) -> None:
    """Raise `TooCostly` for a schema whose options go together in too many ways."""
    total = _Cost(schema["$defs"]).total()
    if total > MAX_COST:
        raise TooCostly("#", "its alternatives can be combined in too many ways")


class _Cost:
    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._widths: dict[str, int] = {}
        self._busy: set[str] = set()
        self._sizes: dict[int, int] = {}

    def total(self) -> int:
        """The sizes of all combinations."""
        total = 0
        stack: list[Any] = list(self._definitions.values())
        while stack and total <= MAX_COST:
            schema = stack.pop()
            stack += parts_of(schema)
            if isinstance(schema, dict) and ("allOf" in schema or ("anyOf" in schema and len(schema) > 1)):
                total += self._width(schema) * self._size(schema)
        return total

    def _size(self, value: Any) -> int:
        if not isinstance(value, (dict, list)):
            return 1
        if id(value) not in self._sizes:
            inner = value.values() if isinstance(value, dict) else value
            self._sizes[id(value)] = 1 + sum(map(self._size, inner))
        return self._sizes[id(value)]

    def _width(self, schema: Any) -> int:
        """In how many ways a value can be valid, as far as the engine tells them apart."""
        if not isinstance(schema, dict):
            return 1
        width = max(1, len(schema.get("enum", ())))
        if isinstance(schema.get("type"), list):
            width *= len(schema["type"])
        if "$ref" in schema:
            width *= self._definition(schema["$ref"].rpartition("/")[2])
        if "anyOf" in schema:
            width *= sum(map(self._width, schema["anyOf"]))
        for part in schema.get("allOf", ()):
            width *= self._width(part)
        return min(width, _ENDLESS)

    def _definition(self, name: str) -> int:
        if name not in self._widths and name not in self._busy:
            self._busy.add(name)
            self._widths[name] = self._width(self._definitions[name])
            self._busy.discard(name)
        return self._widths.get(name, 1)
