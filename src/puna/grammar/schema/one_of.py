"""`oneOf` without counting: branches that exclude each other may be tried as with `anyOf`."""

from __future__ import annotations

from typing import Any

from puna.grammar.schema.disjoint import disjoint, sides
from puna.grammar.schema.document import Place
from puna.grammar.schema.negate import negate
from puna.grammar.schema.rewrite import Effort, Rewriter
from puna.grammar.schema.values import any_of, key_of

MAX_BRANCHES = 200
MAX_OPTIONS = 6
"""Most ways of not being valid under another branch that are kept."""

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
    limits: list[Any] = []
    for other in others:
        if disjoint(rewriter, *part, *other):
            continue
        if rewriter.effort < Effort.ALL:
            rewriter.lose(place, "oneOf", "branches that overlap are not told apart, which would make the schema too complex")
            break
        opposite = negate(rewriter, *other, names=_names(rewriter, *part))
        options = [option for option in opposite.options if not disjoint(rewriter, *part, option, place)]
        if not options and opposite.whole:
            return False
        if not options:
            rewriter.lose(place, "oneOf", "branches that overlap cannot all be told apart, so several may be valid")
            continue
        limits.append(any_of(options[:MAX_OPTIONS]))
    limits = list({key_of(limit): limit for limit in limits}.values())
    return rewritten if not limits else {"allOf": [rewriter.solid(rewritten), *limits]}


def _names(rewriter: Rewriter, schema: Any, place: Place) -> list[str]:
    """The properties that a branch speaks of."""
    return [name for side, _ in sides(rewriter, schema, place) for name in side.get("properties") or () if isinstance(name, str)]
