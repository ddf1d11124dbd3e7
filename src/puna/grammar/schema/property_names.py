"""`propertyNames`: which names an object's properties may have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from puna.grammar.schema import formats
from puna.grammar.schema.patterns import PatternError
from puna.grammar.schema.rewrite import Node, Rewriter
from puna.grammar.schema.scalars import usable_pattern
from puna.grammar.schema.values import listed_types, listed_values

if TYPE_CHECKING:
    from puna.grammar.schema.objects import Members

_ASIDE = frozenset({"type", "description", "title", "$comment", "examples", "default"})


def apply_property_names(rewriter: Rewriter, node: Node, members: Members) -> None:
    """Let the members have only names that the keyword allows."""
    rule = node.schema["propertyNames"]
    if isinstance(rule, dict) and "$ref" in rule:
        found = rewriter.target(rule["$ref"], node.place)
        rule = found[0] if found is not None else rule
    if rule is True:
        return
    values = listed_values(rule) if isinstance(rule, dict) else []
    if isinstance(rule, dict) and "string" not in (listed_types(rule) or ["string"]):
        values = []  # names are strings
    if values is not None:
        if isinstance(rule, dict) and values and rule.keys() - _ASIDE - {"enum", "const"}:
            rewriter.lose(node.place, "propertyNames", "beside a list nothing else can be enforced")
        _only(members, [value for value in values if isinstance(value, str)])
        return
    pattern = _pattern(rewriter, rule)
    if pattern is None:
        return
    if isinstance(pattern, PatternError):
        rewriter.lose(node.place, "propertyNames", str(pattern))
    elif members.patterns and members.rest is not False:
        rewriter.lose(node.place, "propertyNames", "it cannot be combined with 'patternProperties'")
    elif members.rest is not False:
        members.patterns, members.rest = {pattern: members.rest}, False


def _only(members: Members, names: list[str]) -> None:
    """These names and no others; patterns for names are out of use then."""
    rest = members.rest if not members.patterns else False
    members.named = {name: members.named.get(name, rest) for name in [*members.named, *names] if name in names}
    members.patterns, members.rest = {}, False


def _pattern(rewriter: Rewriter, rule: dict[str, Any]) -> str | PatternError | None:
    """An expression for the names that the rule allows; None for all names."""
    keywords = rule.keys() - _ASIDE
    if not keywords:
        return None
    if keywords == {"pattern"} and isinstance(rule["pattern"], str):
        return usable_pattern(rewriter, rule["pattern"])
    if keywords == {"format"} and rule["format"] in formats.STRINGS:
        return f"^(?:{formats.STRINGS[rule['format']]})$"
    if keywords <= {"minLength", "maxLength"}:
        low, high = rule.get("minLength", 0), rule.get("maxLength", "")
        return f"^(?s:.{{{low},{high}}})$"
    return PatternError("only one pattern, a format, lengths or a list can be enforced")
