"""Keywords that apply other schemas to the same value."""

from __future__ import annotations

from typing import Any

from puna.grammar.schema.conditionals import by_property
from puna.grammar.schema.document import SchemaError
from puna.grammar.schema.negate import negate
from puna.grammar.schema.one_of import one_of
from puna.grammar.schema.rewrite import Effort, Handler, Node, Rewriter, list_of, map_of
from puna.grammar.schema.values import any_of

MAX_SPLIT = 4
"""Most dependencies that are looked at one by one: each doubles the cases."""

_ALONE = frozenset(
    {"type", "title", "description", "$comment", "default", "examples", "$schema", "$id", "id", "$defs", "definitions"}
)
"""Keywords beside which the options of a schema are read as schemas of their own."""


def reference(rewriter: Rewriter, node: Node, keyword: str, value: Any) -> None:
    """`$ref`, and its relatives that may lead elsewhere in a schema that extends this one."""
    if keyword == "$recursiveRef":
        value = "#"
    found = rewriter.target(value, node.place)
    if found is None:
        rewriter.lose(node.place, keyword, f"{value[:200]!r} is not part of the schema")
        return
    made = rewriter.refer(*found)
    if "$ref" in node.out:
        node.more.append({"$ref": made})
    else:
        node.out["$ref"] = made


def all_of(rewriter: Rewriter, node: Node, keyword: str, value: Any) -> None:
    """`allOf`."""
    parts = [(part, node.place.child(keyword, index)) for index, part in enumerate(list_of(node, keyword, value))]
    if rewriter.effort >= Effort.MUCH:
        made, parts = by_property(rewriter, parts)
        node.more += made
    node.more += [rewriter.rewrite(part, place, infer=False) for part, place in parts]


def any_of_(rewriter: Rewriter, node: Node, keyword: str, value: Any) -> None:
    """`anyOf`."""
    parts = list_of(node, keyword, value)
    infer = node.schema.keys() - _ALONE <= {keyword}
    made = [rewriter.rewrite(part, node.place.child(keyword, index), infer=infer) for index, part in enumerate(parts)]
    node.more.append(any_of(made))


def one_of_(rewriter: Rewriter, node: Node, keyword: str, value: Any) -> None:
    """`oneOf`."""
    infer = node.schema.keys() - _ALONE <= {keyword}
    node.more.append(one_of(rewriter, list_of(node, keyword, value), node.place, infer=infer))


def not_(rewriter: Rewriter, node: Node, keyword: str, value: Any) -> None:
    """`not`."""
    if not rewriter.enough(node, keyword, Effort.MUCH):
        return
    opposite = negate(rewriter, value, node.place.child(keyword))
    if not opposite.options and not opposite.whole:
        rewriter.lose(node.place, keyword, "the opposite cannot be expressed")
    else:
        node.more.append(any_of(opposite.options))


def if_(rewriter: Rewriter, node: Node, keyword: str, value: Any) -> None:
    """`if`, `then` and `else`: either the condition and the one, or its opposite and the other."""
    if "then" not in node.schema and "else" not in node.schema:
        return
    if not rewriter.enough(node, keyword, Effort.MUCH):
        return
    place = node.place
    opposite = negate(rewriter, value, place.child(keyword))
    if not opposite.options and not opposite.whole:
        rewriter.lose(place, keyword, "the opposite of the condition cannot be expressed")
        return
    condition = rewriter.rewrite(value, place.child(keyword), infer=False)
    then = rewriter.rewrite(node.schema.get("then", True), place.child("then"), infer=False)
    other = rewriter.rewrite(node.schema.get("else", True), place.child("else"), infer=False)
    node.more.append(any_of([_both(rewriter, condition, then), _both(rewriter, any_of(opposite.options), other)]))


def _both(rewriter: Rewriter, a: Any, b: Any) -> Any:
    if a is False or b is False:
        return False
    return b if a is True else a if b is True else {"allOf": [rewriter.solid(a), rewriter.solid(b)]}


def dependencies(rewriter: Rewriter, node: Node, keyword: str, value: Any) -> None:
    """Properties that ask for others, or for a schema, where they are there."""
    if not rewriter.enough(node, keyword, Effort.MUCH):
        return
    cases: list[tuple[str, Any]] = []
    for name, wanted in map_of(node, keyword).items():
        where = node.place.child(keyword, name)
        if isinstance(wanted, list):
            if not all(isinstance(item, str) for item in wanted):
                raise SchemaError(where.pointer, "a list of names is expected")
            cases.append((name, {"required": [name, *wanted]}))
        elif isinstance(wanted, str):  # draft 3
            cases.append((name, {"required": [name, wanted]}))
        else:
            cases.append((name, _both(rewriter, {"required": [name]}, rewriter.rewrite(wanted, where, infer=False))))
    if len(cases) <= MAX_SPLIT:
        node.more += [any_of([{"properties": {name: False}}, then]) for name, then in cases if then is not True]
        return
    without = {"properties": dict.fromkeys((name for name, _ in cases), False)}
    one_each = [
        _both(rewriter, {"properties": dict.fromkeys((other for other, _ in cases if other != name), False)}, then)
        for name, then in cases
    ]
    with_all = {"allOf": [then for _, then in cases]}
    node.more.append(any_of([without, *(one_each if len(cases) <= 30 else ()), with_all]))


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("$ref", "$dynamicRef", "$recursiveRef"), reference),
    "allOf": all_of,
    "anyOf": any_of_,
    "oneOf": one_of_,
    "not": not_,
    "if": if_,
    **dict.fromkeys(("dependencies", "dependentRequired", "dependentSchemas"), dependencies),
}
