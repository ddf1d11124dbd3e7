"""Whether two schemas can be told apart: no value is valid under both. Only what is certain counts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from puna.grammar.schema.document import Place
from puna.grammar.schema.rewrite import Rewriter
from puna.grammar.schema.values import key_of, listed_types, listed_values, possible_types

MAX_DEPTH = 8


def disjoint(rewriter: Rewriter, a: Any, a_place: Place, b: Any, b_place: Place, depth: int = 0) -> bool:
    """Whether no value is valid under both `a` and `b`."""
    if a is False or b is False:
        return True
    if not isinstance(a, dict) or not isinstance(b, dict) or depth > MAX_DEPTH:
        return False
    rewriter.count()
    others = list(sides(rewriter, b, b_place))
    for one, one_place in sides(rewriter, a, a_place):
        for other, other_place in others:
            if _apart(rewriter, one, one_place, other, other_place, depth):
                return True
    return False


def sides(rewriter: Rewriter, schema: Any, place: Place, depth: int = 0) -> Iterator[tuple[dict[str, Any], Place]]:
    """Schemas that a valid value fulfils each: this one, what it refers to, and the parts of `allOf`."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return
    place = place.entered(schema)
    yield schema, place
    if isinstance(schema.get("$ref"), str):
        found = rewriter.document.find(schema["$ref"], place.base)
        if found is not None:
            yield from sides(rewriter, *found, depth + 1)
    parts = schema.get("allOf")
    for index, part in enumerate(parts if isinstance(parts, list) else ()):
        yield from sides(rewriter, part, place.child("allOf", index), depth + 1)


def _apart(rewriter: Rewriter, a: dict[str, Any], a_place: Place, b: dict[str, Any], b_place: Place, depth: int) -> bool:
    return (
        _types_apart(a, b)
        or _values_apart(a, b)
        or _numbers_apart(a, b)
        or _properties_apart(rewriter, a, a_place, b, b_place, depth)
        or _options_apart(rewriter, a, a_place, b, b_place, depth)
        or _options_apart(rewriter, b, b_place, a, a_place, depth)
    )


def _types_apart(a: dict[str, Any], b: dict[str, Any]) -> bool:
    first, second = possible_types(a), possible_types(b)
    if ("integer" in first and "number" in second) or ("number" in first and "integer" in second):
        return False
    return not first & second


def _values_apart(a: dict[str, Any], b: dict[str, Any]) -> bool:
    first, second = listed_values(a), listed_values(b)
    if first is None or second is None:
        return False
    return {key_of(value) for value in first}.isdisjoint(key_of(value) for value in second)


def _numbers_apart(a: dict[str, Any], b: dict[str, Any]) -> bool:
    numeric = {"number", "integer"}
    if not (possible_types(a) <= numeric or possible_types(b) <= numeric):
        return False
    (low, low_open), (high, high_open) = _range(a)
    (b_low, b_low_open), (b_high, b_high_open) = _range(b)
    return (
        low > b_high
        or b_low > high
        or (low == b_high and (low_open or b_high_open))
        or (b_low == high and (b_low_open or high_open))
    )


def _range(schema: dict[str, Any]) -> tuple[tuple[float, bool], tuple[float, bool]]:
    """Least and greatest number, and whether these themselves are left out."""
    low, high = (_number(schema.get("minimum"), -math.inf), False), (_number(schema.get("maximum"), math.inf), False)
    return max(low, (_number(schema.get("exclusiveMinimum"), -math.inf), True)), min(
        high, (_number(schema.get("exclusiveMaximum"), math.inf), True), key=lambda bound: (bound[0], not bound[1])
    )


def _number(value: Any, missing: float) -> float:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else missing


def _properties_apart(
    rewriter: Rewriter, a: dict[str, Any], a_place: Place, b: dict[str, Any], b_place: Place, depth: int
) -> bool:
    """Both are objects, and some property that has to be there cannot be what both want of it."""
    if listed_types(a) != ["object"] and listed_types(b) != ["object"]:
        return False
    for name in [*_names(a), *_names(b)]:
        first, first_place = _property(a, a_place, name)
        second, second_place = _property(b, b_place, name)
        if disjoint(rewriter, first, first_place, second, second_place, depth + 1):
            return True
    return False


def _names(schema: dict[str, Any]) -> list[str]:
    names = schema.get("required")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def _property(schema: dict[str, Any], place: Place, name: str) -> tuple[Any, Place]:
    properties = schema.get("properties")
    if isinstance(properties, dict) and name in properties:
        return properties[name], place.child("properties", name)
    if schema.get("additionalProperties") is False and not schema.get("patternProperties"):
        return False, place
    return True, place


def _options_apart(rewriter: Rewriter, a: dict[str, Any], a_place: Place, b: dict[str, Any], b_place: Place, depth: int) -> bool:
    """Every option of `a` is apart from `b`."""
    for keyword in ("anyOf", "oneOf"):
        options = a.get(keyword)
        if isinstance(options, list) and options:
            places = (a_place.child(keyword, index) for index in range(len(options)))
            pairs = zip(options, places, strict=True)
            if all(disjoint(rewriter, option, place, b, b_place, depth + 1) for option, place in pairs):
                return True
    return False
