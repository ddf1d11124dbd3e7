"""`oneOf` without counting: branches that exclude each other may be tried as with `anyOf`."""

from __future__ import annotations

from typing import Any

from puna.grammar.schema.disjoint import disjoint, sides
from puna.grammar.schema.document import Place
from puna.grammar.schema.negate import negate
from puna.grammar.schema.rewrite import Effort, Rewriter
from puna.grammar.schema.values import any_of, key_of

MAX_BRANCHES = 200
MAX_WAYS = 64
"""Most ways of not being valid under all other branches that are kept of one branch."""

_Branch = tuple[Any, Place]


def one_of(rewriter: Rewriter, branches: list[Any], place: Place, *, infer: bool) -> Any:
    """A schema under which a value is valid for exactly one of the branches, as far as that can be said."""
    different = {key_of(branch): (branch, place.child("oneOf", index)) for index, branch in enumerate(branches)}
    if len(different) < len(branches):
        rewriter.lose(place, "oneOf", "some of its branches are the same")
    parts = list(different.values())
    made = [rewriter.rewrite(branch, where, infer=infer) for branch, where in parts]
    if len(parts) > MAX_BRANCHES:
        rewriter.lose(place, "oneOf", f"more than {MAX_BRANCHES} branches are not compared, so several may be valid")
        return any_of(made)
    found = []
    for number, (part, rewritten) in enumerate(zip(parts, made, strict=True)):
        others = [other for index, other in enumerate(parts) if index != number]
        found.append(_only(rewriter, part, rewritten, others, place))
    return any_of(found)


def _only(rewriter: Rewriter, part: _Branch, rewritten: Any, others: list[_Branch], place: Place) -> Any:
    """The branch, made narrower so that no other one is valid as well."""
    limits: dict[str, list[Any]] = {}
    names = list(_properties(rewriter, part))
    for other in others:
        if disjoint(rewriter, *part, *other):
            continue
        if rewriter.effort < Effort.ALL:
            rewriter.lose(place, "oneOf", "branches that overlap are not told apart, which would make the schema too complex")
            break
        telling = _telling_property(rewriter, part, other)
        if telling is not None:
            limits[telling] = [{"type": "object", "required": [telling]}]
            continue
        opposite = negate(rewriter, *other, names=names)
        options = [option for option in opposite.options if not disjoint(rewriter, *part, option, place)]
        if not options and opposite.whole:
            return False
        if not options:
            rewriter.lose(place, "oneOf", "branches that overlap cannot all be told apart, so several may be valid")
            continue
        options.sort(key=lambda option: _cost(option, names))
        limits[key_of(options)] = options
    if not limits:
        return rewritten
    most = max(1, int(MAX_WAYS ** (1 / len(limits))))
    return {"allOf": [rewriter.solid(rewritten), *(any_of(options[:most]) for options in limits.values())]}


def _telling_property(rewriter: Rewriter, part: _Branch, other: _Branch) -> str | None:
    """A property that, where it is there, cannot be what both branches want of it."""
    theirs = _properties(rewriter, other)
    for name, mine in _properties(rewriter, part).items():
        if name in theirs and disjoint(rewriter, *mine, *theirs[name]):
            return name
    return None


def _properties(rewriter: Rewriter, branch: _Branch) -> dict[str, _Branch]:
    """The properties that a branch speaks of, with what it wants of them."""
    found: dict[str, _Branch] = {}
    for side, place in sides(rewriter, *branch):
        properties = side.get("properties")
        for name, inner in properties.items() if isinstance(properties, dict) else ():
            found.setdefault(name, (inner, place.child("properties", name)))
    return found


def _cost(option: Any, names: list[str]) -> tuple[bool, bool, int]:
    """How much an option takes away from a branch: least, if it only leaves out a property the branch does not speak of."""
    required = isinstance(option, dict) and bool(option.get("required") or "allOf" in option)
    spoken_of = isinstance(option, dict) and any(name in names for name in option.get("properties", ()))
    return required, spoken_of, len(key_of(option))
