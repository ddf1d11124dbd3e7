"""Keywords about arrays, rewritten together: what one says depends on the others."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

from puna.grammar.schema.document import SchemaError
from puna.grammar.schema.rewrite import Effort, Handler, Node, Out, Rewriter, count_of, list_of
from puna.grammar.schema.values import any_of, listed_values

KEYWORDS = (
    *("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"),
    *("contains", "minContains", "maxContains", "unevaluatedItems"),
)

LONGEST = 2_000
"""A greater bound on the number of items is none in practice."""

MAX_PERMUTED = 4
"""Most different values of which every order is tried for `uniqueItems`; of a few more only the given order."""

MAX_CHOSEN = 8


def array(rewriter: Rewriter, node: Node, keyword: str, value: Any) -> None:
    """All keywords of an array."""
    node.done.update(KEYWORDS)
    prefix, rest = _items(rewriter, node)
    low, high = count_of(node, "minItems") or 0, count_of(node, "maxItems")
    if low > LONGEST:
        rewriter.lose(node.place, "minItems", f"more than {LONGEST} items are out of reach")
        low = 0
    if high is not None and high > LONGEST:
        high = None
    if "contains" in node.schema:
        prefix, low = _contains(rewriter, node, prefix, rest, low)
    if prefix:
        node.out["prefixItems"] = prefix
    if rest is not True:
        node.out["items"] = rest
    if low:
        node.out["minItems"] = low
    if high is not None:
        node.out["maxItems"] = high
    if (
        node.schema.get("uniqueItems") is True
        and (high is None or high > 1)
        and rewriter.enough(node, "uniqueItems", Effort.MUCH)
    ):
        _unique(rewriter, node, low, high)


def _items(rewriter: Rewriter, node: Node) -> tuple[list[Any], Any]:
    """The schemas of the first items, and that of all others."""
    items = node.schema.get("items", True)
    if isinstance(items, list):
        first, rest, key, rest_key = items, node.schema.get("additionalItems", True), "items", "additionalItems"
    else:
        first = list_of(node, "prefixItems", node.schema.get("prefixItems", []))
        rest, key, rest_key = items, "prefixItems", "items"
    if rest is True and "unevaluatedItems" in node.schema:
        rest, rest_key = node.schema["unevaluatedItems"], "unevaluatedItems"
    prefix: list[Any] = [rewriter.rewrite(item, node.place.child(key, index)) for index, item in enumerate(first)]
    return prefix, rewriter.rewrite(rest, node.place.child(rest_key))


def _contains(rewriter: Rewriter, node: Node, prefix: list[Any], rest: Any, low: int) -> tuple[list[Any], int]:
    """The first items are those that the array has to contain."""
    wanted = count_of(node, "minContains")
    wanted = 1 if wanted is None else wanted
    if "maxContains" in node.schema:
        rewriter.lose(node.place, "maxContains", "items of a kind cannot be counted")
    if wanted > LONGEST:
        raise SchemaError(node.place.child("minContains").pointer, f"at most {LONGEST} is possible")
    kind = rewriter.rewrite(node.schema["contains"], node.place.child("contains"))
    first = [*prefix, *([rest] * (wanted - len(prefix)))]
    for index in range(wanted):
        first[index] = kind if first[index] is True else {"allOf": [first[index], kind]}
    return first, max(low, wanted)


def _unique(rewriter: Rewriter, node: Node, low: int, high: int | None) -> None:
    """`uniqueItems`: every list of a few possible values is written out."""
    values = None if "prefixItems" in node.out else _values(rewriter, node)
    if values is None or len(values) > MAX_CHOSEN:
        rewriter.lose(node.place, "uniqueItems", "items can only be compared where they are one of a few values")
        return
    most = len(values) if high is None else min(high, len(values))
    pick = permutations if len(values) <= MAX_PERMUTED else combinations
    lists = [list(chosen) for count in range(low, most + 1) for chosen in pick(values, count)]
    rewriter.count(sum(map(len, lists)))
    node.more.append(any_of([_exactly(items) for items in lists]))


def _exactly(items: list[Any]) -> Out:
    return {
        "type": "array",
        "prefixItems": [{"const": item} for item in items],
        "items": False,
        "minItems": len(items),
        "maxItems": len(items),
    }


def _values(rewriter: Rewriter, node: Node) -> list[Any] | None:
    """The values that every item is one of."""
    items, place = node.schema.get("items"), node.place
    if isinstance(items, dict) and set(items) & {"$ref", "enum", "const", "type"} == {"$ref"}:
        found = rewriter.target(items["$ref"], place)
        items = found[0] if found is not None else None
    if not isinstance(items, dict):
        return None
    if items.get("type") == "boolean":
        return [False, True]
    return listed_values(items)


HANDLERS: dict[str, Handler] = dict.fromkeys(KEYWORDS, array)
