"""Whether what a rewritten schema asks for can come to an end. Pure."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from puna.grammar.schema.document import Impossible, SchemaError
from puna.grammar.schema.values import parts_of

MAX_CHAIN = 1_000
"""Most references in a row, each from within what the one before leads to: the engine follows them recursively."""


def prune(schema: dict[str, Any]) -> None:
    """Make impossible what would never end: an object that has to hold another one of its kind, and so on for ever.

    Raises `SchemaError` when that is all the schema allows.
    """
    definitions: dict[str, Any] = schema["$defs"]
    ending: set[str] = set()
    grown = True
    while grown:
        before = len(ending)
        ending.update(name for name, inner in definitions.items() if _ends(inner, ending))
        grown = len(ending) > before
    dead = definitions.keys() - ending
    for name, inner in list(definitions.items()):
        definitions[name] = _without(inner, dead)
    if _name(schema) not in ending:
        raise Impossible("#", "no value of any finite size is valid under it")
    _check_chains(definitions)


def _name(schema: dict[str, Any]) -> str:
    return str(schema["$ref"].rpartition("/")[2])


def _ends(schema: Any, ending: set[str]) -> bool:
    """Whether there is a finite value, given the definitions for which there is one."""
    if not isinstance(schema, dict):
        return bool(schema)
    if "$ref" in schema and _name(schema) not in ending:
        return False
    if "anyOf" in schema and not any(_ends(option, ending) for option in schema["anyOf"]):
        return False
    if not all(_ends(part, ending) for part in schema.get("allOf", ())):
        return False
    types = schema.get("type")
    return types not in ("object", "array") or (_object_ends(schema, ending) and _array_ends(schema, ending))


def _object_ends(schema: dict[str, Any], ending: set[str]) -> bool:
    named, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
    patterns = schema.get("patternProperties")
    return all(
        _ends(named[name], ending) if name in named else bool(patterns) or _ends(rest, ending)
        for name in schema.get("required", ())
    )


def _array_ends(schema: dict[str, Any], ending: set[str]) -> bool:
    first, least = schema.get("prefixItems", []), schema.get("minItems", 0)
    return all(_ends(item, ending) for item in first[:least]) and (
        least <= len(first) or _ends(schema.get("items", True), ending)
    )


def _without(schema: Any, dead: Set[str]) -> Any:
    """The schema without what refers to definitions that never end."""
    if not dead or not isinstance(schema, dict):
        return schema
    if "$ref" in schema and _name(schema) in dead:
        return False
    made = dict(schema)
    for keyword in ("properties", "patternProperties"):
        if keyword in made:
            made[keyword] = {name: _without(inner, dead) for name, inner in made[keyword].items()}
    for keyword in ("items", "additionalProperties"):
        if keyword in made:
            made[keyword] = _without(made[keyword], dead)
    for keyword in ("prefixItems", "allOf", "anyOf"):
        if keyword in made:
            made[keyword] = [_without(inner, dead) for inner in made[keyword]]
    if "anyOf" in made:
        made["anyOf"] = [inner for inner in made["anyOf"] if inner is not False]
    return False if made.get("anyOf") == [] or False in made.get("allOf", ()) else made


def _check_chains(definitions: dict[str, Any]) -> None:
    seen: set[str] = set()
    for start in definitions:
        path = [] if start in seen else [iter(_references(definitions[start]))]
        seen.add(start)
        while path:
            step = next((name for name in path[-1] if name not in seen), None)
            if step is None:
                path.pop()
                continue
            seen.add(step)
            path.append(iter(_references(definitions[step])))
            if len(path) > MAX_CHAIN:
                raise SchemaError("#", f"more than {MAX_CHAIN} references follow each other")


def _references(schema: Any) -> list[str]:
    found: list[str] = []
    stack = [schema]
    while stack:
        inner = stack.pop()
        stack += parts_of(inner)
        if isinstance(inner, dict) and "$ref" in inner:
            found.append(_name(inner))
    return found
