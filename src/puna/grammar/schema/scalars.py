"""Keywords about types, single values, numbers and strings."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from puna.grammar.schema import formats
from puna.grammar.schema.document import SchemaError
from puna.grammar.schema.limits import MAX_PATTERN
from puna.grammar.schema.patterns import PatternError, translate
from puna.grammar.schema.rewrite import Effort, Handler, Node, Rewriter, check_types, count_of, list_of
from puna.grammar.schema.values import key_of, listed_types

FARTHEST = 2**63 - 2**11
"""The greatest number that a bound can have; one a little beyond is taken for this one."""

UNBOUNDED = 1e60
"""A bound beyond this is none in practice."""

_PLAIN = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}

LONGEST = 50_000
"""A greater bound on a length is none in practice: no answer gets that far."""


def type_(rewriter: Rewriter, node: Node, keyword: str, value: Any) -> None:
    """`type`: one or several."""
    types = check_types(node, [value] if isinstance(value, str) else list_of(node, keyword, value))
    node.out["type"] = value if isinstance(value, str) else list(dict.fromkeys(types))


def enum(rewriter: Rewriter, node: Node, keyword: str, value: Any) -> None:
    """`enum`, each value once."""
    node.out["enum"] = list({key_of(item): item for item in list_of(node, keyword, value)}.values())


def const(rewriter: Rewriter, node: Node, keyword: str, value: Any) -> None:
    """`const`, which may be any value."""
    node.out["const"] = value


def bound(rewriter: Rewriter, node: Node, keyword: str, value: Any) -> None:
    """Least and greatest values; those of the older drafts are made exclusive by a keyword of their own."""
    number = value
    if isinstance(value, bool) and keyword in _PLAIN:
        plain = _PLAIN[keyword]
        if not value or plain not in node.schema:
            return
        node.out.pop(plain, None)
        node.done.add(plain)
        number = node.schema[plain]
    number = _number(node, keyword, number)
    least = "inimum" in keyword
    if abs(number) < FARTHEST:
        node.out[keyword] = number
    elif least == (number > 0):
        rewriter.lose(node.place, keyword, f"numbers beyond {FARTHEST} are out of reach")
    elif abs(number) < UNBOUNDED:
        node.out[keyword] = FARTHEST if number > 0 else -FARTHEST


def multiple_of(rewriter: Rewriter, node: Node, keyword: str, value: Any) -> None:
    """`multipleOf`, as far as the engine's arithmetic reaches."""
    number = _number(node, keyword, value)
    if number <= 0:
        raise SchemaError(node.place.child(keyword).pointer, "a number above 0 is expected")
    decimal = Decimal(str(number)).normalize()
    exponent = decimal.as_tuple().exponent
    if not isinstance(exponent, int) or exponent < -6 or decimal.scaleb(max(0, -exponent)) > 1_000_000:
        rewriter.lose(node.place, keyword, "only multiples of simple numbers can be enforced")
        return
    node.out[keyword] = number


def _number(node: Node, keyword: str, value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise SchemaError(node.place.child(keyword).pointer, "a number is expected")
    return value


def length(rewriter: Rewriter, node: Node, keyword: str, value: Any) -> None:
    """`minLength` and `maxLength`."""
    count = count_of(node, keyword)
    if count is None or (keyword == "maxLength" and count > LONGEST):
        return
    if count > LONGEST:
        rewriter.lose(node.place, keyword, f"lengths beyond {LONGEST} are out of reach")
        return
    node.out[keyword] = count


def pattern(rewriter: Rewriter, node: Node, keyword: str, value: Any) -> None:
    """`pattern`, in the engine's syntax."""
    if not isinstance(value, str):
        raise SchemaError(node.place.child(keyword).pointer, "a text is expected")
    if not rewriter.enough(node, keyword, Effort.LITTLE):
        return
    made = usable_pattern(rewriter, value)
    if isinstance(made, PatternError):
        rewriter.lose(node.place, keyword, f"{value[:100]!r}: {made}")
    else:
        _add_pattern(node, made)


def usable_pattern(rewriter: Rewriter, pattern: str) -> str | PatternError:
    """The engine's form of a pattern, or why there is none."""
    if len(pattern) > MAX_PATTERN:
        return PatternError(f"it is longer than {MAX_PATTERN} characters")
    try:
        made = translate(pattern)
    except PatternError as error:
        return error
    problem = rewriter.usable(made, None, None)
    return PatternError(problem) if problem else made


def format_(rewriter: Rewriter, node: Node, keyword: str, value: Any) -> None:
    """`format`: of strings a pattern, of numbers bounds."""
    if not isinstance(value, str):
        raise SchemaError(node.place.child(keyword).pointer, "a text is expected")
    name = value.lower()
    types = listed_types(node.schema) or ["string"]
    if name in formats.NUMBERS:
        bounds = formats.NUMBERS[name]
        if bounds is not None and ("integer" in types or "number" in types):
            node.more.append({"minimum": max(bounds[0], -FARTHEST), "maximum": min(bounds[1], FARTHEST)})
    elif "string" not in types or name in formats.ANNOTATIONS:
        return
    elif name in formats.STRINGS:
        if rewriter.enough(node, keyword, Effort.ALL if "pattern" in node.schema else Effort.LITTLE):
            _add_pattern(node, f"^(?:{formats.STRINGS[name]})$")
    elif name == "regex":
        return  # nobody could enforce it, and any string is one in some dialect
    else:
        rewriter.lose(node.place, keyword, f"the format {value[:100]!r} is not known")


def _add_pattern(node: Node, made: str) -> None:
    if "pattern" in node.out:
        node.more.append({"pattern": made})
    else:
        node.out["pattern"] = made


HANDLERS: dict[str, Handler] = {
    "type": type_,
    "enum": enum,
    "const": const,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), bound),
    "multipleOf": multiple_of,
    "minLength": length,
    "maxLength": length,
    "pattern": pattern,
    "format": format_,
}
