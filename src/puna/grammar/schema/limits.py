"""Bounds on a schema, looked at before anything goes through it recursively. Pure."""

from __future__ import annotations

from typing import Any

from puna.grammar.schema.document import SchemaError

MAX_DEPTH = 90
MAX_VALUES = 100_000
"""Most objects, lists and single values in all."""

MAX_PROPERTIES = 5_000
MAX_ENUM = 50_000
"""Most values of all `enum`s together."""

MAX_PATTERN = 4_096
"""Most characters of a `pattern`."""


def check_limits(schema: Any) -> None:
    """Raise `SchemaError` for a schema that is too large or too deep to be worth the time."""
    values = properties = enums = 0
    stack: list[tuple[Any, int]] = [(schema, 1)]
    while stack:
        value, depth = stack.pop()
        values += 1
        if depth > MAX_DEPTH:
            raise SchemaError("#", f"it is nested deeper than {MAX_DEPTH} levels")
        if isinstance(value, dict):
            stack += [(inner, depth + 1) for inner in value.values()]
            properties += len(value["properties"]) if isinstance(value.get("properties"), dict) else 0
            enums += len(value["enum"]) if isinstance(value.get("enum"), list) else 0
        elif isinstance(value, list):
            stack += [(inner, depth + 1) for inner in value]
        for count, most, what in (
            (values, MAX_VALUES, "values"),
            (properties, MAX_PROPERTIES, "properties"),
            (enums, MAX_ENUM, "enum values"),
        ):
            if count > most:
                raise SchemaError("#", f"it has more than {most} {what}")
