"""What the arguments of a tool's call have to be: as a grammar, and as types for formats that write them without quotes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from puna.chat.formats.plan import Tool
from puna.outline import Node, Part
from puna.types import Constraint

Kind = Literal["string", "json", "either"]
"""Whether a value is a string, is none, or may be either."""

JSON_TYPES = ("number", "boolean", "object", "array", "null")
"""Types of values that are no strings."""

MAX_REFERENCES = 8
"""References to references, and unions in unions, that are followed."""

_SHARED = ("$defs", "definitions", "$schema", "$id")
_OPEN = ("additionalProperties", "patternProperties", "allOf", "anyOf", "oneOf", "$ref", "if", "unevaluatedProperties")
_STRINGS = frozenset({"minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"})


def schema_of(tool: Tool) -> dict[str, Any]:
    """The schema of the arguments; a tool that names its arguments takes no others unless it says so."""
    schema = dict(tool.parameters) or {"type": "object", "properties": {}}
    schema.setdefault("type", "object")
    if "properties" in schema and not any(key in schema for key in _OPEN):
        schema["additionalProperties"] = False
    return schema


def arguments(tool: Tool) -> Node:
    """All arguments as a JSON object."""
    return _part(tool, schema_of(tool), "")


def argument(tool: Tool, key: str) -> Node:
    """One argument as JSON."""
    return json_part(tool, schema_of(tool)["properties"][key], key)


def json_part(tool: Tool, schema: Any, key: str) -> Node:
    """A value within the arguments as JSON; `key` is what messages call it."""
    shared = {name: tool.parameters[name] for name in _SHARED if name in tool.parameters}
    if isinstance(schema, Mapping):
        schema = {**shared, **schema} if "$ref" not in schema else {**shared, "allOf": [schema]}
    return _part(tool, schema, key)


def _part(tool: Tool, schema: Any, key: str) -> Part:
    constraint = Constraint("json_schema", msgspec.json.encode(schema).decode(), strict=tool.strict)
    return Part(constraint, label=f"{tool.name}.{key}" if key else tool.name, param="tools", spaced=True)


def properties(tool: Tool) -> Mapping[str, Any] | None:
    """The schemas of the named arguments; None where the schema does not just name them."""
    schema = schema_of(tool)
    found = schema.get("properties")
    return found if isinstance(found, Mapping) and schema.get("additionalProperties") is False else None


def required(tool: Tool) -> frozenset[str]:
    """The named arguments that have to be there."""
    found = tool.parameters.get("required")
    return frozenset(name for name in found if isinstance(name, str)) if isinstance(found, (list, tuple)) else frozenset()


def types_of(tool: Tool, key: str) -> tuple[str, ...]:
    """The types that an argument's value may have beside that of a string; all of them if that is not said."""
    own = resolved(schema_of(tool)["properties"][key], tool.parameters)
    found = own.get("type") if isinstance(own, Mapping) else None
    listed = found if isinstance(found, (list, tuple)) else [found]
    names = {"number" if name == "integer" else name for name in listed if isinstance(name, str)}
    return tuple(name for name in JSON_TYPES if name in names) or JSON_TYPES


def resolved(schema: Any, root: Mapping[str, Any]) -> Any:
    """The schema, or what it refers to; None where that is nothing."""
    for _ in range(MAX_REFERENCES):
        if not isinstance(schema, Mapping) or not isinstance(ref := schema.get("$ref"), str):
            return schema
        schema = _resolve(ref, root)
    return None


def kind_of(tool: Tool | None, key: str) -> Kind:
    """What the values of an argument are."""
    if tool is None:
        return "either"
    found = tool.parameters.get("properties")
    own = found.get(key) if isinstance(found, Mapping) else None
    return kind_of_schema(own, tool.parameters)


def kind_of_schema(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Kind:
    """What the values of a schema are; `root` is where its references lead."""
    schema = resolved(schema, root)
    if not isinstance(schema, Mapping) or depth > MAX_REFERENCES:
        return "either"
    kind = schema.get("type")
    if isinstance(kind, str):
        return "string" if kind == "string" else "json"
    if isinstance(kind, (list, tuple)):
        return _join(["string" if one == "string" else "json" for one in kind])
    values = schema["enum"] if isinstance(schema.get("enum"), (list, tuple)) else [schema["const"]] if "const" in schema else []
    if values:
        return _join(["string" if isinstance(value, str) else "json" for value in values])
    for keyword in ("anyOf", "oneOf", "allOf"):
        options = schema.get(keyword)
        if isinstance(options, (list, tuple)):
            return _join([kind_of_schema(option, root, depth + 1) for option in options])
    return "string" if schema.keys() & _STRINGS else "either"


def _join(kinds: list[Kind]) -> Kind:
    return kinds[0] if len(set(kinds)) == 1 else "either"


def _resolve(ref: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    for step in ref.removeprefix("#").strip("/").split("/"):
        if not isinstance(found, Mapping):
            return None
        found = found.get(step.replace("~1", "/").replace("~0", "~"))
    return found
