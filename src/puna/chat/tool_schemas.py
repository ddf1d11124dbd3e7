"""Tools with schemas that templates can read: the simplest ones only know names, types and descriptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from puna.chat.capabilities import Capabilities

MAX_DEPTH = 64


def complete_tools(tools: Sequence[Mapping[str, Any]], capabilities: Capabilities) -> list[Mapping[str, Any]]:
    """The same tools with what the template counts on: descriptions, types, which arguments are required, or that there are
    parameters at all."""
    return [
        {**tool, "function": _complete_function(tool["function"])}
        if "function" in tool and not _complete(tool["function"], capabilities)
        else tool
        for tool in tools
    ]


def _complete(function: Mapping[str, Any], capabilities: Capabilities) -> bool:
    return capabilities.bare_tools and (capabilities.no_parameters or "properties" in (function.get("parameters") or {}))


def _complete_function(function: Mapping[str, Any]) -> dict[str, Any]:
    parameters = function.get("parameters") or {}
    properties = parameters.get("properties") or {}
    full = {
        name: {"type": "string", "description": "", **schema} if isinstance(schema, Mapping) else schema
        for name, schema in properties.items()
    }
    return {
        "description": "",
        **function,
        "parameters": {"type": "object", "required": [], **parameters, "properties": full},
    }


def simplify_tools(tools: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The same tools with every schema reduced to what any template that reads schemas expects: one type, a description
    that is text, no schema that is a mere true or false. What a client sent is shown unchanged wherever a template takes it."""
    return [{**tool, "function": _simple_function(tool["function"])} if "function" in tool else tool for tool in tools]


def _simple_function(function: Mapping[str, Any]) -> dict[str, Any]:
    parameters = _simple({"required": [], **(function.get("parameters") or {}), "type": "object"}, MAX_DEPTH)
    return {**function, "description": function.get("description") or "", "parameters": parameters}


def _simple(schema: Any, depth: int) -> dict[str, Any]:
    if not isinstance(schema, Mapping) or not depth:
        return {"type": "string", "description": ""}
    kinds = schema.get("type", "string")
    if not isinstance(kinds, str):
        kinds = next((kind for kind in kinds if kind != "null"), "string")
    simple = {**schema, "type": kinds, "description": schema.get("description") or ""}
    if kinds == "object":
        properties = schema.get("properties")
        named = properties.items() if isinstance(properties, Mapping) else ()
        simple["properties"] = {name: _simple(inner, depth - 1) for name, inner in named}
        simple["additionalProperties"] = _simple(schema.get("additionalProperties"), depth - 1)
    elif kinds == "array":
        simple["items"] = _simple(schema.get("items"), depth - 1)
    return simple
