"""Patterns of property names that overlap. The engine refuses them: it would not know what such a property is to be.

Patterns that overlap are made one: what matches any of them is to be what all of them want, which leaves out some of what
is valid. Where that would leave nothing for a property that has a name, only properties with names stay.
"""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING, Any

from puna.grammar.schema.values import key_of, refers

if TYPE_CHECKING:
    from puna.grammar.schema.document import Place
    from puna.grammar.schema.rewrite import Rewriter

MAX_PATTERNS = 12
"""Most patterns that are compared with each other. More than that are taken to overlap."""

_ESCAPE = re.compile(r"\\x\{([0-9A-F]+)\}")
_LITERAL = re.compile(r"\^?((?:[\w -]|\\x\{[0-9A-F]+\})+)\$?")


def matches(pattern: str, name: str) -> bool:
    """Whether a name may match the pattern, which is in the engine's syntax."""
    try:
        return re.search(_ESCAPE.sub(lambda found: re.escape(chr(int(found[1], 16))), pattern), name) is not None
    except re.error:
        return True


def without_overlaps(
    rewriter: Rewriter, place: Place, named: dict[str, Any], patterns: dict[str, Any], rest: Any, required: list[str]
) -> dict[str, Any]:
    """The patterns with no two that overlap. Properties may be added to those that have names."""
    if len(patterns) < 2 or rewriter.apart(tuple(patterns)):
        return patterns
    found: dict[str, Any] = {}
    for group in _groups(rewriter, list(patterns)):
        members = {pattern: patterns[pattern] for pattern in group}
        if len({key_of(inner) for inner in members.values()}) == 1:
            found["|".join(f"(?:{pattern})" for pattern in group)] = members[group[0]]
            continue
        names = [*dict.fromkeys([*named, *required])]
        if rest is False:
            names += [name for name in map(_literal, group) if name and name not in names]
        matching = {name: [pattern for pattern in group if matches(pattern, name)] for name in names}
        if not any(0 < len(some) < len(group) for some in matching.values()):
            found["|".join(f"(?:{pattern})" for pattern in group)] = _all(list(members.values()))
            continue
        if rest is not False:
            rewriter.lose(place, "patternProperties", "patterns that overlap cannot be told apart")
        for name, some in matching.items():
            if some:
                wanted = _all([named.get(name, True), *(members[pattern] for pattern in some)])
                costly = name not in required and isinstance(wanted, dict) and "allOf" in wanted and refers(wanted)
                named[name] = False if costly else wanted
    return found


def _groups(rewriter: Rewriter, patterns: list[str]) -> list[list[str]]:
    """The patterns in groups: those of different groups do not overlap."""
    if len(patterns) > MAX_PATTERNS:
        return [patterns]
    groups = {pattern: [pattern] for pattern in patterns}
    for one, other in combinations(patterns, 2):
        if groups[one] is not groups[other] and not rewriter.apart((one, other)):
            groups[one] += groups[other]
            for member in groups[other]:
                groups[member] = groups[one]
    return list({id(group): group for group in groups.values()}.values())


def _literal(pattern: str) -> str:
    """A name that a plain pattern matches, or nothing."""
    found = _LITERAL.fullmatch(pattern)
    return _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), found[1]) if found else ""


def _all(wanted: list[Any]) -> Any:
    """A schema for what is all of those."""
    wanted = [inner for inner in {key_of(inner): inner for inner in wanted}.values() if inner is not True]
    if False in wanted:
        return False
    return True if not wanted else wanted[0] if len(wanted) == 1 else {"allOf": wanted}
