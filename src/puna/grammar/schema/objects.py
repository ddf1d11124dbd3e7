"""Keywords about objects, rewritten together: what one says depends on the others."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

from puna.grammar.schema.document import SchemaError
from puna.grammar.schema.overlaps import matches, without_overlaps
from puna.grammar.schema.patterns import PatternError
from puna.grammar.schema.property_names import apply_property_names
from puna.grammar.schema.rewrite import Effort, Handler, Node, Rewriter, count_of, list_of, map_of
from puna.grammar.schema.scalars import usable_pattern
from puna.grammar.schema.values import any_of, refers

KEYWORDS = (
    *("properties", "required", "additionalProperties", "patternProperties", "propertyNames"),
    *("minProperties", "maxProperties", "unevaluatedProperties"),
)

MAX_CHOICES = 40
"""Most combinations of properties that are written out."""


@dataclass(slots=True)
class Members:
    """What an object may have, rewritten."""

    named: dict[str, Any]
    patterns: dict[str, Any]
    rest: Any
    """The schema of all other properties."""
    required: list[str]


def object_(rewriter: Rewriter, node: Node, keyword: str, value: Any) -> None:
    """All keywords of an object but those about dependencies."""
    node.done.update(KEYWORDS)
    members = _members(rewriter, node)
    if "propertyNames" in node.schema:
        apply_property_names(rewriter, node, members)
    if members.named:
        node.out["properties"] = members.named
    if members.patterns:
        node.out["patternProperties"] = members.patterns
    if members.required:
        node.out["required"] = members.required
    _counts(rewriter, node, members)
    if members.rest is not True:
        node.out["additionalProperties"] = members.rest


def _members(rewriter: Rewriter, node: Node) -> Members:
    place = node.place
    named = {name: rewriter.rewrite(inner, place.child("properties", name)) for name, inner in map_of(node, "properties").items()}
    rest_key = "additionalProperties"
    if rest_key not in node.schema and "unevaluatedProperties" in node.schema:
        rest_key = "unevaluatedProperties"
        if {"allOf", "anyOf", "oneOf", "$ref", "if", "dependentSchemas"} & node.schema.keys() and node.schema[
            rest_key
        ] is not True:
            rewriter.lose(place, rest_key, "what other keywords allow cannot be told apart")
            rest_key = ""
    rest = rewriter.rewrite(node.schema.get(rest_key, True), place.child(rest_key))
    patterns: dict[str, Any] = {}
    for pattern, inner in map_of(node, "patternProperties").items():
        where = place.child("patternProperties", pattern)
        made = usable_pattern(rewriter, pattern)
        rewritten = rewriter.rewrite(inner, where)
        if not isinstance(made, PatternError):
            patterns[made] = rewritten
        elif rest is not False and rewritten is not True:
            rewriter.lose(place, "patternProperties", f"{pattern[:100]!r}: {made}")
    required = _required(node)
    if patterns and not rewriter.enough(node, "patternProperties", Effort.LITTLE):
        patterns = {}
    patterns = without_overlaps(rewriter, place, named, patterns, rest, required)
    if patterns:
        if rewriter.effort < Effort.ALL and any(matches(one, name) for one in patterns for name in required if name in named):
            rewriter.lose(place, "patternProperties", "with it the schema is too complex")
            patterns = {}
        for name, inner in named.items():
            if name not in required and _is_costly(rewriter, name, inner, patterns):
                named[name] = False
    return Members(named, patterns, rest, required)


def _is_costly(rewriter: Rewriter, name: str, inner: Any, patterns: dict[str, Any]) -> bool:
    """Whether to leave out a property rather than combine what its name and a pattern want of it.

    The engine cannot do that where references meet, and it takes much work.
    """
    matching = [wanted for pattern, wanted in patterns.items() if matches(pattern, name)]
    if not matching or inner is False:
        return False
    return rewriter.effort < Effort.ALL or (refers(inner) and any(map(refers, matching)))


def _required(node: Node) -> list[str]:
    value = node.schema.get("required", [])
    if isinstance(value, bool):  # draft 3 put it inside the property
        return []
    names = list_of(node, "required", value)
    if not all(isinstance(name, str) for name in names):
        raise SchemaError(node.place.child("required").pointer, "a list of names is expected")
    return list(dict.fromkeys(names))


def _counts(rewriter: Rewriter, node: Node, members: Members) -> None:
    """`minProperties` and `maxProperties`. The engine counts only properties that have no names of their own."""
    low, high = count_of(node, "minProperties") or 0, count_of(node, "maxProperties")
    optional = [name for name, inner in members.named.items() if name not in members.required and inner is not False]
    n_required = len(members.required)
    if high is not None and high < n_required:
        node.more.append(False)
        return
    open_ended = members.rest is not False or bool(members.patterns)
    if open_ended and low - n_required > 1:
        rewriter.lose(node.place, "minProperties", "properties that are not listed by name may be given the same name twice")
    if not optional:
        if low > n_required:
            node.out["minProperties"] = low
        if high is not None and open_ended:
            node.out["maxProperties"] = high
        return
    if low > n_required and rewriter.enough(node, "minProperties", Effort.MUCH):
        _at_least(rewriter, node, optional, low - n_required, open_ended)
    too_many = high is not None and (open_ended or high < n_required + len(optional))
    if high is not None and too_many and rewriter.enough(node, "maxProperties", Effort.MUCH):
        _at_most(rewriter, node, members, optional, high - n_required, open_ended)


def _at_least(rewriter: Rewriter, node: Node, optional: list[str], n: int, open_ended: bool) -> None:
    """Some `n` of the optional properties, or as many others."""
    options: list[Any] = [{"required": list(names)} for names in _choices(optional, min(n, len(optional)))]
    if n > len(optional):
        options = []
    if open_ended:
        low = n + len(node.out.get("required", ()))
        options.append({"properties": dict.fromkeys(optional, False), "minProperties": low})
    rewriter.count(len(options) * len(optional))
    node.more.append(any_of(options))


def _at_most(rewriter: Rewriter, node: Node, members: Members, optional: list[str], n: int, open_ended: bool) -> None:
    """Either properties with names, at most `n` of them, or at most `n` others."""
    options: list[Any] = []
    taken = dict.fromkeys([*members.named, *members.required], True)
    for names in _choices(optional, min(n, len(optional))):
        others = dict.fromkeys((name for name in optional if name not in names), False)
        options.append({"properties": {**taken, **others}, "additionalProperties": False})
    if open_ended and n > 0:
        high = n + len(members.required)
        options.append({"properties": dict.fromkeys(optional, False), "maxProperties": high})
    rewriter.count(len(options) * len(optional))
    node.more.append(any_of(options))


def _choices(names: list[str], n: int) -> list[tuple[str, ...]]:
    """Ways to choose `n` names: all of them if they are few, else each name with those that come after it."""
    if comb(len(names), n) <= MAX_CHOICES:
        return list(combinations(names, n))
    last = len(names) - n
    starts = sorted({round(index * last / (MAX_CHOICES - 1)) for index in range(MAX_CHOICES)})
    return [tuple(names[start : start + n]) for start in starts]


HANDLERS: dict[str, Handler] = dict.fromkeys(KEYWORDS, object_)
