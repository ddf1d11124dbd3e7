"""What values look like by their schema, for formats that write them otherwise than as JSON.

Where a schema says more than a shape can, the value is JSON: its grammar then enforces all that it says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from puna.chat.formats.arguments import kind_of_schema, resolved, schema_of
from puna.chat.formats.plan import Tool

MAX_DEPTH = 6
"""How deep shapes nest; what is deeper is JSON."""

MAX_SHAPES = 500
"""How many shapes a tool has; what comes after them is JSON. References can make very many of a few."""

_NOTES = frozenset({"type", "title", "description", "default", "examples", "$schema", "$id", "$defs", "definitions", "$comment"})
_OBJECT = _NOTES | {"properties", "required", "additionalProperties"}
_LIST = _NOTES | {"items", "minItems", "maxItems"}


@dataclass(frozen=True)
class Shape:
    """A value's shape."""

    kind: Literal["string", "object", "list", "json", "any"]
    """`json` for numbers and the like, and for what its schema says more of; `any` for what may be a string or not."""
    schema: Any
    fields: tuple[tuple[str, Shape, bool], ...] = ()
    """Of an object: names, their shapes, and whether they have to be there."""
    item: Shape | None = None
    """Of a list."""
    low: int = 0
    high: int | None = None
    """How many items it has."""


def shape_of(tool: Tool) -> Shape | None:
    """The shape of all arguments, an object; None where they are not just named."""
    found = _Shaper(tool.parameters).shape(schema_of(tool), 0)
    return found if found.kind == "object" else None


class _Shaper:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._n = 0

    def shape(self, schema: Any, depth: int) -> Shape:
        self._n += 1
        schema = resolved(schema, self._root)
        kind = kind_of_schema(schema, self._root)
        if kind != "json":
            return Shape("string" if kind == "string" else "any", schema)
        found = None
        if depth < MAX_DEPTH and self._n < MAX_SHAPES and isinstance(schema, Mapping):
            found = self._object(schema, depth) or self._list(schema, depth)
        return found or Shape("json", schema)

    def _object(self, schema: Mapping[str, Any], depth: int) -> Shape | None:
        named, needed = schema.get("properties"), schema.get("required", ())
        if schema.get("type") != "object" or not schema.keys() <= _OBJECT or schema.get("additionalProperties"):
            return None
        if not isinstance(named, Mapping) or not isinstance(needed, (list, tuple)) or any(key not in named for key in needed):
            return None
        return Shape("object", schema, tuple((key, self.shape(own, depth + 1), key in needed) for key, own in named.items()))

    def _list(self, schema: Mapping[str, Any], depth: int) -> Shape | None:
        if schema.get("type") != "array" or not schema.keys() <= _LIST or not isinstance(schema.get("items"), Mapping):
            return None
        low, high = schema.get("minItems", 0), schema.get("maxItems")
        if not isinstance(low, int) or not (high is None or (isinstance(high, int) and 0 <= low <= high)):
            return None
        return Shape("list", schema, item=self.shape(schema["items"], depth + 1), low=low, high=high)
