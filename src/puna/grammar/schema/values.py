"""What JSON values and types have to do with each other. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

TYPES = ("null", "boolean", "number", "string", "array", "object")
"""JSON's types; `integer` is part of `number`."""

_KEYWORDS = {
    "number": "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
    "string": "minLength maxLength pattern",
    "array": "items prefixItems additionalItems minItems maxItems uniqueItems contains minContains maxContains unevaluatedItems",
    "object": "properties required additionalProperties patternProperties propertyNames minProperties maxProperties "
    "dependencies dependentRequired dependentSchemas unevaluatedProperties",
}

KEYWORD_TYPES = {keyword: kind for kind, keywords in _KEYWORDS.items() for keyword in keywords.split()}
"""Keywords and the only type of values that they say something about."""


def type_of(value: Any) -> str:
    """JSON's type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "number"
    return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"


def key_of(value: Any) -> str:
    """A text that is the same for equal values, numbers compared by size and objects without regard to order."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def listed_types(schema: dict[str, Any]) -> list[str] | None:
    """The types that `type` lists, None where there is no such keyword."""
    listed = schema.get("type")
    return [listed] if isinstance(listed, str) else listed if isinstance(listed, list) else None


def listed_values(schema: dict[str, Any]) -> list[Any] | None:
    """The values that `const` and `enum` leave, None where there is neither."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else None


def possible_types(schema: dict[str, Any]) -> set[str]:
    """Types, `integer` among them, that values of the schema can have, as far as its own keywords tell."""
    listed = listed_types(schema)
    values = listed_values(schema)
    types = set(listed if listed is not None else TYPES)
    return types if values is None else {kind for kind in map(type_of, values) if kind in types or "integer" in types}


def other_types(types: Iterable[str]) -> list[str]:
    """All types but these; of numbers that are not integers nothing can be said, so they are not among the others."""
    taken = {"number" if kind == "integer" else kind for kind in types}
    return [kind for kind in TYPES if kind not in taken]


def any_of(options: list[Any]) -> Any:
    """A schema for what any of the options is."""
    if True in options:
        return True
    options = [option for option in options if option is not False]
    return False if not options else options[0] if len(options) == 1 else {"anyOf": options}


def parts_of(schema: Any) -> Iterator[Any]:
    """The schemas directly inside a rewritten one."""
    if not isinstance(schema, dict):
        return
    for keyword in ("properties", "patternProperties", "$defs"):
        yield from schema.get(keyword, {}).values()
    for keyword in ("allOf", "anyOf", "prefixItems"):
        yield from schema.get(keyword, ())
    for keyword in ("items", "additionalProperties"):
        if keyword in schema:
            yield schema[keyword]


def refers(schema: Any) -> bool:
    """Whether there is a reference anywhere in a rewritten schema."""
    stack = [schema]
    while stack:
        inner = stack.pop()
        if isinstance(inner, dict) and "$ref" in inner:
            return True
        stack += parts_of(inner)
    return False
