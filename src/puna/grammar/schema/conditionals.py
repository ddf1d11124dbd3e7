"""Several conditions on the same property, told apart by its value: each on its own would double the cases."""

from __future__ import annotations

from typing import Any

from puna.grammar.schema.document import Place
from puna.grammar.schema.negate import negate
from puna.grammar.schema.rewrite import Rewriter
from puna.grammar.schema.values import any_of, key_of, listed_values

_ASIDE = frozenset({"title", "description", "$comment"})
_OF_IF = frozenset({"type", "properties", "required"}) | _ASIDE

Part = tuple[Any, Place]


def by_property(rewriter: Rewriter, parts: list[Part]) -> tuple[list[Any], list[Part]]:
    """Rewritten schemas in place of conditions that share a property, and the parts that are none of those."""
    groups: dict[str, list[Part]] = {}
    rest: list[Part] = []
    for part in parts:
        name = _tested(part[0])
        if name is None:
            rest.append(part)
        else:
            groups.setdefault(name, []).append(part)
    made: list[Any] = []
    for name, group in groups.items():
        if len(group) < 2:
            rest += group
        else:
            made.append(_cases(rewriter, name, group))
    return made, rest


def _tested(schema: Any) -> str | None:
    """The property whose value alone a conditional schema depends on."""
    if not isinstance(schema, dict) or not {"if"} <= schema.keys() - _ASIDE <= {"if", "then", "else"}:
        return None
    test = schema["if"]
    if not isinstance(test, dict) or not test.keys() <= _OF_IF or test.get("type", "object") != "object":
        return None
    properties = test.get("properties")
    if not isinstance(properties, dict) or len(properties) != 1:
        return None
    (name, inner), *_ = properties.items()
    if not isinstance(inner, dict) or listed_values(inner) is None or not inner.keys() <= {"const", "enum", "type"} | _ASIDE:
        return None
    return str(name) if test.get("required", [name]) == [name] else None


def _cases(rewriter: Rewriter, name: str, group: list[Part]) -> Any:
    """One option for each set of values that the conditions treat alike, one for other values, one without the property."""
    tests = [{key_of(value): value for value in listed_values(part["if"]["properties"][name]) or []} for part, _ in group]
    alike: dict[tuple[bool, ...], list[Any]] = {}
    for key, value in {key: value for test in tests for key, value in test.items()}.items():
        alike.setdefault(tuple(key in test for test in tests), []).append(value)
    options = [_case(rewriter, group, holds, _with(name, {"enum": values})) for holds, values in alike.items()]
    everything = [value for values in alike.values() for value in values]
    others = negate(rewriter, {"enum": everything}, group[0][1]).options
    if others:
        options.append(_case(rewriter, group, (False,) * len(group), _with(name, any_of(others))))
    without = tuple("required" not in part["if"] for part, _ in group)
    options.append(_case(rewriter, group, without, {"properties": {name: False}}))
    return any_of(options)


def _with(name: str, inner: Any) -> dict[str, Any]:
    return {"required": [name], "properties": {name: inner}}


def _case(rewriter: Rewriter, group: list[Part], holds: tuple[bool, ...], start: dict[str, Any]) -> Any:
    """What is asked for where the conditions hold as `holds` says."""
    wanted: list[Any] = []
    for (part, place), true in zip(group, holds, strict=True):
        keyword = "then" if true else "else"
        if keyword in part:
            wanted.append(rewriter.solid(rewriter.rewrite(part[keyword], place.child(keyword), infer=False)))
    if False in wanted:
        return False
    wanted = [inner for inner in wanted if inner is not True]
    return {"allOf": [start, *wanted]} if wanted else start
