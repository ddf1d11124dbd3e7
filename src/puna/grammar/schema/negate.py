"""Schemas for what another schema does not allow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from puna.grammar.schema.document import Place
from puna.grammar.schema.patterns import PatternError, none_of
from puna.grammar.schema.rewrite import Rewriter
from puna.grammar.schema.values import any_of, key_of, listed_types, listed_values, other_types, type_of

MAX_DEPTH = 6
MAX_OPTIONS = 32


@dataclass(slots=True)
class Opposite:
    """Ways not to be valid under a schema."""

    options: list[Any] = field(default_factory=list)
    """Rewritten schemas, each of which alone makes a value invalid under the original."""
    whole: bool = True
    """Whether there are no other ways; else there are some that cannot be expressed."""

    def add(self, other: Opposite) -> None:
        """Take in more ways."""
        self.options += other.options
        self.whole &= other.whole


@dataclass(frozen=True, slots=True)
class _Task:
    """A schema to find the opposite of."""

    rewriter: Rewriter
    schema: dict[str, Any]
    place: Place
    depth: int
    names: tuple[str, ...]

    def inner(self, schema: Any, *keys: str | int) -> Opposite:
        return negate(self.rewriter, schema, self.place.child(*keys), self.depth + 1)


_Handler = Callable[[_Task, Any], Opposite]


def negate(rewriter: Rewriter, schema: Any, place: Place, depth: int = 0, *, names: Iterable[str] = ()) -> Opposite:
    """Ways not to be valid under `schema`. `names` are properties that an object may have which it says nothing about."""
    if isinstance(schema, bool):
        return Opposite([] if schema else [True])
    if depth > MAX_DEPTH or not isinstance(schema, dict):
        return Opposite(whole=False)
    task = _Task(rewriter, schema, place.entered(schema), depth, tuple(names))
    found = Opposite()
    for keyword, value in schema.items():
        if keyword in _HANDLERS:
            found.add(_HANDLERS[keyword](task, value))
    if len(found.options) > MAX_OPTIONS:
        found = Opposite(found.options[:MAX_OPTIONS], whole=False)
    rewriter.count(len(found.options))
    return found


def _type(task: _Task, value: Any) -> Opposite:
    types = listed_types(task.schema)
    if types is None:
        return Opposite(whole=False)
    others = other_types(types)
    exact = "integer" not in types or "number" in types
    return Opposite([{"type": others}] if others else [], exact)


def _values(task: _Task, value: Any) -> Opposite:
    """No value of `const` or `enum`: one of another type, or another one of the same type."""
    values = {key_of(item): item for item in listed_values(task.schema) or []}.values()
    others = other_types({type_of(item) for item in values})
    found = Opposite([{"type": others}] if others else [])
    texts = [item for item in values if isinstance(item, str)]
    if texts:
        with suppress(PatternError):  # without this option there may be others
            found.options.append({"type": "string", "pattern": none_of(texts)})
    numbers = sorted(item for item in values if type_of(item) == "number")
    if numbers:
        found.options += [{"type": "number", "exclusiveMaximum": numbers[0]}, {"type": "number", "exclusiveMinimum": numbers[-1]}]
        between = [{"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": high} for low, high in pairwise(numbers)]
        found.options += between
    truths = {item for item in values if isinstance(item, bool)}
    if len(truths) == 1:
        found.options.append({"const": not truths.pop()})
    found.whole = not any(isinstance(item, (list, dict)) for item in values)
    return found


def _bound(opposite: str) -> _Handler:
    def handle(task: _Task, value: Any) -> Opposite:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return Opposite(whole=False)
        return Opposite([{"type": "number", opposite: value}])

    return handle


def _count(kind: str, opposite: str, step: int) -> _Handler:
    def handle(task: _Task, value: Any) -> Opposite:
        if not isinstance(value, int):
            return Opposite(whole=False)
        limit = {"type": kind, opposite: value + step}
        return Opposite([task.rewriter.rewrite(limit, task.place)] if value + step >= 0 else [])

    return handle


def _required(task: _Task, value: Any) -> Opposite:
    names = [name for name in value if isinstance(name, str)] if isinstance(value, list) else []
    return Opposite([{"type": "object", "properties": {name: False}} for name in names])


def _properties(task: _Task, value: Any) -> Opposite:
    """A property that is there and is not as it should be."""
    found = Opposite()
    for name, inner in value.items() if isinstance(value, dict) else ():
        opposite = task.inner(inner, "properties", name)
        wrong = any_of(opposite.options)
        options = [] if wrong is False else [{"type": "object", "properties": {name: wrong}, "required": [name]}]
        found.add(Opposite(options, opposite.whole))
    return found


def _additional(task: _Task, value: Any) -> Opposite:
    """A property that must not be there; which ones those are is not for a schema to say, so that only some are named."""
    if value is True or value == {}:
        return Opposite()
    known = task.schema.get("properties")
    known = known if isinstance(known, dict) else {}
    names = [name for name in task.names if name not in known and not task.schema.get("patternProperties")]
    if value is not False:
        return Opposite(whole=False)
    return Opposite([{"type": "object", "required": [name]} for name in names], whole=False)


def _dependencies(task: _Task, value: Any) -> Opposite:
    if not isinstance(value, dict):
        return Opposite(whole=False)
    lists = {name: others for name, others in value.items() if isinstance(others, list)}
    pairs = [(name, other) for name, others in lists.items() for other in others]
    options = [{"type": "object", "required": [name], "properties": {other: False}} for name, other in pairs]
    return Opposite(options, len(lists) == len(value))


def _any_of(task: _Task, value: Any) -> Opposite:
    """None of the options."""
    none: list[Any] = []
    whole = True
    for index, inner in enumerate(value if isinstance(value, list) else ()):
        opposite = task.inner(inner, "anyOf", index)
        whole &= opposite.whole
        none.append(any_of(opposite.options))
    return Opposite([], whole) if False in none else Opposite([{"allOf": none}], whole)


def _one_of(task: _Task, value: Any) -> Opposite:
    """None of the branches. That several are valid would do as well."""
    return Opposite(_any_of(task, value).options, whole=False)


def _all_of(task: _Task, value: Any) -> Opposite:
    found = Opposite()
    for index, inner in enumerate(value if isinstance(value, list) else ()):
        found.add(task.inner(inner, "allOf", index))
    return found


def _not(task: _Task, value: Any) -> Opposite:
    return Opposite([task.rewriter.rewrite(value, task.place.child("not"), infer=False)])


def _ref(task: _Task, value: Any) -> Opposite:
    found = task.rewriter.target(value, task.place)
    if found is None:
        return Opposite(whole=False)
    return negate(task.rewriter, found[0], found[1], task.depth + 1, names=task.names)


def _unknown(task: _Task, value: Any) -> Opposite:
    return Opposite(whole=False)


_HANDLERS: dict[str, _Handler] = {
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
    "additionalProperties": _additional,
    "dependentRequired": _dependencies,
    "dependencies": _dependencies,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "allOf": _all_of,
    "not": _not,
    "$ref": _ref,
    **dict.fromkeys(("pattern", "format", "multipleOf", "items", "prefixItems", "additionalItems", "uniqueItems"), _unknown),
    **dict.fromkeys(("contains", "patternProperties", "propertyNames", "if", "dependentSchemas"), _unknown),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), _unknown),
}
