"""Schemas for what another schema does not allow.

The result is a list of options, each of which alone makes a value invalid under the original. It need not hold all there
are. None means that not even one can be expressed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

from puna.grammar.schema.document import Place
from puna.grammar.schema.patterns import PatternError, none_of
from puna.grammar.schema.rewrite import Rewriter
from puna.grammar.schema.values import any_of, key_of, listed_types, listed_values, other_types, type_of

MAX_DEPTH = 6
MAX_OPTIONS = 32

Options = list[Any] | None
Negate = Callable[[Rewriter, Any, Any, Place, int], Options]


def negate(rewriter: Rewriter, schema: Any, place: Place, depth: int = 0) -> Options:
    """Options for what `schema` does not allow, rewritten. An empty list: it allows everything."""
    if isinstance(schema, bool):
        return [] if schema else [True]
    if depth > MAX_DEPTH or not isinstance(schema, dict):
        return None
    place = place.entered(schema)
    found: list[Any] = []
    unknown = False
    for keyword, value in schema.items():
        if keyword not in _KEYWORDS:
            continue
        options = _KEYWORDS[keyword](rewriter, schema, value, place, depth)
        if options is None:
            unknown = True
        else:
            found += options
    found = found[:MAX_OPTIONS]
    rewriter.count(len(found))
    return None if unknown and not found else found


def _type(rewriter: Rewriter, schema: Any, value: Any, place: Place, depth: int) -> Options:
    types = listed_types(schema)
    others = other_types(types) if types is not None else []
    if others:
        return [{"type": others}]
    return None if types is not None and "integer" in types else []


def _values(rewriter: Rewriter, schema: Any, value: Any, place: Place, depth: int) -> Options:
    """No value of `const` or `enum`: one of another type, or another one of the same type."""
    values = {key_of(item): item for item in listed_values(schema) or []}.values()
    others = other_types({type_of(item) for item in values})
    found: list[Any] = [{"type": others}] if others else []
    texts = [item for item in values if isinstance(item, str)]
    if texts:
        with suppress(PatternError):  # without this option there may be others
            found.append({"type": "string", "pattern": none_of(texts)})
    numbers = sorted(item for item in values if type_of(item) == "number")
    if numbers:
        found += [{"type": "number", "exclusiveMaximum": numbers[0]}, {"type": "number", "exclusiveMinimum": numbers[-1]}]
        found += [{"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": high} for low, high in pairwise(numbers)]
    truths = {item for item in values if isinstance(item, bool)}
    if len(truths) == 1:
        found.append({"const": not truths.pop()})
    return found or None


def _bound(opposite: str) -> Negate:
    def options(rewriter: Rewriter, schema: Any, value: Any, place: Place, depth: int) -> Options:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return [{"type": "number", opposite: value}] if is_number else None

    return options


def _count(kind: str, opposite: str, step: int) -> Negate:
    def options(rewriter: Rewriter, schema: Any, value: Any, place: Place, depth: int) -> Options:
        if not isinstance(value, int):
            return None
        return [rewriter.rewrite({"type": kind, opposite: value + step}, place)] if value + step >= 0 else []

    return options


def _required(rewriter: Rewriter, schema: Any, value: Any, place: Place, depth: int) -> Options:
    if not isinstance(value, list):
        return None
    return [{"type": "object", "properties": {name: False}} for name in value if isinstance(name, str)]


def _properties(rewriter: Rewriter, schema: Any, value: Any, place: Place, depth: int) -> Options:
    """A property that is there and is not as it should be."""
    found: list[Any] = []
    unknown = False
    for name, inner in value.items() if isinstance(value, dict) else ():
        options = negate(rewriter, inner, place.child("properties", name), depth + 1)
        if options is None:
            unknown = True
        elif options:
            found.append({"type": "object", "properties": {name: any_of(options)}, "required": [name]})
    return None if unknown and not found else found


def _dependencies(rewriter: Rewriter, schema: Any, value: Any, place: Place, depth: int) -> Options:
    pairs = [(name, other) for name, others in value.items() if isinstance(others, list) for other in others]
    return [{"type": "object", "required": [name], "properties": {other: False}} for name, other in pairs] or None


def _any_of(rewriter: Rewriter, schema: Any, value: Any, place: Place, depth: int) -> Options:
    """None of the options."""
    none: list[Any] = []
    for index, inner in enumerate(value if isinstance(value, list) else ()):
        options = negate(rewriter, inner, place.child("anyOf", index), depth + 1)
        if options is None:
            return None
        none.append(any_of(options))
    return [] if False in none else [{"allOf": none}]


def _all_of(rewriter: Rewriter, schema: Any, value: Any, place: Place, depth: int) -> Options:
    found: list[Any] = []
    unknown = False
    for index, inner in enumerate(value if isinstance(value, list) else ()):
        options = negate(rewriter, inner, place.child("allOf", index), depth + 1)
        unknown |= options is None
        found += options or []
    return None if unknown and not found else found


def _not(rewriter: Rewriter, schema: Any, value: Any, place: Place, depth: int) -> Options:
    return [rewriter.rewrite(value, place.child("not"), infer=False)]


def _ref(rewriter: Rewriter, schema: Any, value: Any, place: Place, depth: int) -> Options:
    found = rewriter.target(value, place)
    return None if found is None else negate(rewriter, found[0], found[1], depth + 1)


def _unknown(rewriter: Rewriter, schema: Any, value: Any, place: Place, depth: int) -> Options:
    return None


_KEYWORDS: dict[str, Negate] = {
    "type": _type,
    "const": _values,
    "enum": _values,
    "minimum": _bound("exclusiveMaximum"),
    "maximum": _bound("exclusiveMinimum"),
    "exclusiveMinimum": _bound("maximum"),
    "exclusiveMaximum": _bound("minimum"),
    "minLength": _count("string", "maxLength", -1),
    "maxLength": _count("string", "minLength", 1),
    "minItems": _count("array", "maxItems", -1),
    "maxItems": _count("array", "minItems", 1),
    "minProperties": _count("object", "maxProperties", -1),
    "maxProperties": _count("object", "minProperties", 1),
    "required": _required,
    "properties": _properties,
    "dependentRequired": _dependencies,
    "dependencies": _dependencies,
    "anyOf": _any_of,
    "oneOf": _any_of,
    "allOf": _all_of,
    "not": _not,
    "$ref": _ref,
    **dict.fromkeys(("pattern", "format", "multipleOf", "items", "prefixItems", "additionalItems", "uniqueItems"), _unknown),
    **dict.fromkeys(("contains", "additionalProperties", "patternProperties", "propertyNames", "if"), _unknown),
    **dict.fromkeys(("dependentSchemas", "unevaluatedItems", "unevaluatedProperties"), _unknown),
}
