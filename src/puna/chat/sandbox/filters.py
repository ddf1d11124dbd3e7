"""Jinja's filters, each paid for before it runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from jinja2.filters import FILTERS
from jinja2.runtime import Context
from jinja2.utils import pass_context

from puna.chat.sandbox.budget import BIG, Budget, TemplateLimit, active
from puna.chat.sandbox.operators import MAX_WIDTH, binary, bounded_product, grown, printf, replaced

MAX_COUNT = 10_000
"""Largest number of pieces, columns or digits that a filter is asked for."""
MAX_SLOW_BYTES = 1 << 16
"""Largest input of the filters that work with regular expressions or layout."""

_LEFT_OUT = frozenset(["urlize", "wordwrap"])
"""They multiply two inputs, and no chat template wants them."""

_ITERATING = frozenset([
    "batch", "dictsort", "first", "groupby", "join", "last", "list", "map", "max", "min", "random", "reject", "rejectattr",
    "reverse", "select", "selectattr", "slice", "sort", "sum", "unique",
])  # fmt: skip

Check = Callable[..., None]


def guarded_filters() -> dict[str, Callable[..., Any]]:
    """The table of filters for the sandbox."""
    functions: dict[str, Callable[..., Any]] = {**FILTERS, "format": _format, "join": _join, "sum": _sum, "tojson": _tojson}
    table = {name: _guard(name, function) for name, function in functions.items() if name not in _LEFT_OUT}
    table.update({CONCAT: _concat, CUT: _admit, ITERATE: _iterate, TICK: _tick, WEIGH: _admit})
    return table


# Names that no template can write: `instrument` puts these filters in. (`map` could name them; they only cost.)
CONCAT, CUT, ITERATE, TICK, WEIGH = "<concat>", "<cut>", "<iterate>", "<tick>", "<weigh>"


@pass_context
def _concat(_context: Context, values: list[Any]) -> str:
    budget = active()
    pieces = [budget.text(value) for value in values]
    budget.spend(sum(map(sys.getsizeof, pieces)))
    return "".join(pieces)


@pass_context
def _admit(_context: Context, value: Any) -> Any:
    return active().admit(value)


@pass_context
def _iterate(_context: Context, value: Any) -> Any:
    budget = active()
    budget.tick()
    budget.spend(_toll(value, iterating=True))
    return budget.drip(value) if isinstance(value, Iterator) else value


@pass_context
def _tick(_context: Context, n_bytes: int) -> None:
    budget = active()
    budget.tick()
    budget.spend(n_bytes)


def _guard(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    # `pass_context` also keeps Jinja from running the filter on constants while it compiles.
    head = getattr(getattr(function, "jinja_pass_arg", None), "name", "")
    check = _CHECKS.get(name)
    iterating = name in _ITERATING

    @pass_context
    def guarded(context: Context, value: Any = None, *args: Any, **kwargs: Any) -> Any:
        budget = active()
        budget.tick()
        budget.spend(_toll(value, iterating))
        if check is not None:
            check(budget, value, *args, **kwargs)
        if isinstance(value, Iterator):
            value = budget.drip(value)
        if head == "context":
            return budget.admit(function(context, value, *args, **kwargs))
        if head == "eval_context":
            return budget.admit(function(context.eval_ctx, value, *args, **kwargs))
        if head == "environment":
            return budget.admit(function(context.environment, value, *args, **kwargs))
        return budget.admit(function(value, *args, **kwargs))

    return guarded


def _toll(value: Any, iterating: bool) -> int:
    if isinstance(value, str):
        if iterating:
            return len(value) * (8 if value.isascii() else 80)
        return len(value)
    if isinstance(value, (list, tuple, dict)):
        return 16 * len(value)
    return 0


def _format(value: Any, *args: Any, **kwargs: Any) -> str:
    if args and kwargs:
        raise TypeError("can't handle positional and keyword arguments at the same time")
    return printf(active().text(value), kwargs or args)


@pass_context
def _join(context: Context, value: Any, d: Any = "", attribute: Any = None) -> str:
    budget = active()
    if attribute is not None:
        value = context.environment.call_filter("map", value, (), {"attribute": attribute}, context=context)
    separator = budget.text(d)
    pieces = [budget.text(item) for item in budget.drip(value)]
    budget.spend(sum(map(sys.getsizeof, pieces)) + sys.getsizeof(separator) * len(pieces))
    return separator.join(pieces)


@pass_context
def _sum(context: Context, value: Any, attribute: Any = None, start: Any = 0) -> Any:
    if attribute is not None:
        value = context.environment.call_filter("map", value, (), {"attribute": attribute}, context=context)
    for item in value:
        start = binary("+", lambda left, right: left + right, start, item)
    return start


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # As Hugging Face renders it: no HTML escapes, and the text is not marked as safe.
    budget = active()
    if isinstance(value, Iterator):
        # The result of `map` or `select`: other engines have lists there, and templates count on it.
        value = budget.admit(list(value))
    weight = budget.weigh(value)
    if weight > BIG:
        budget.spend(6 * weight)
    encoder = json.JSONEncoder(
        ensure_ascii=bool(ensure_ascii),
        indent=_short(indent),
        separators=None if separators is None else (str(_short(separators[0])), str(_short(separators[1]))),
        sort_keys=bool(sort_keys),
    )
    if indent is None and separators is None:
        return encoder.encode(value)
    # Indents and separators multiply with depth and members: pay piece by piece.
    pieces = []
    for piece in encoder.iterencode(value):
        budget.spend(sys.getsizeof(piece))
        pieces.append(piece)
    return "".join(pieces)


def _short(value: Any) -> Any:
    if (len(value) if isinstance(value, str) else value or 0) > 32:
        raise TemplateLimit("the chat template asks for too wide an indent or separator")
    return value


def _small(budget: Budget, value: Any, *_args: Any, **_kwargs: Any) -> None:
    if budget.weigh(value) > MAX_SLOW_BYTES:
        raise TemplateLimit("the chat template uses a slow filter on too long a text")


def _folding(budget: Budget, value: Any, *_args: Any) -> None:
    if isinstance(value, str):
        budget.spend(grown(value, 1 if value.isascii() else 4))


def _escaping(budget: Budget, value: Any, *_args: Any, **_kwargs: Any) -> None:
    budget.spend(6 * budget.weigh(value) if budget.weigh(value) > BIG else 0)


def _centering(_budget: Budget, _value: Any, width: int = 80) -> None:
    _at_most(width, MAX_WIDTH)


def _indenting(budget: Budget, value: Any, width: int | str = 4, *_args: Any, **_kwargs: Any) -> None:
    size = sys.getsizeof(width) if isinstance(width, str) else width
    _at_most(size, MAX_WIDTH)
    if isinstance(value, str):
        budget.spend((value.count("\n") + 1) * max(size, 0))
        budget.spend(64 * value.count("\n"))


def _replacing(budget: Budget, value: Any, old: str, new: str, count: int | None = None) -> None:
    if isinstance(value, str):
        budget.spend(replaced(value, old, new, -1 if count is None else count))


def _trimming(_budget: Budget, value: Any, chars: str | None = None) -> None:
    if isinstance(value, str):
        bounded_product(value, chars)


def _grouping(_budget: Budget, _value: Any, count: int = 0, *_args: Any, **_kwargs: Any) -> None:
    _at_most(count, MAX_COUNT)


def _rounding(_budget: Budget, _value: Any, precision: int = 0, *_args: Any, **_kwargs: Any) -> None:
    _at_most(abs(precision), 100)


def _writing_out(budget: Budget, value: Any, *_args: Any, **_kwargs: Any) -> None:
    budget.weigh(value)


def _at_most(number: Any, limit: int) -> None:
    if isinstance(number, (int, float)) and number > limit:
        raise TemplateLimit("the chat template uses too large a number")


_CHECKS: dict[str, Check] = {
    "batch": _grouping, "slice": _grouping, "round": _rounding,
    "capitalize": _folding, "lower": _folding, "upper": _folding, "title": _small, "wordcount": _small,
    "center": _centering, "indent": _indenting, "replace": _replacing, "trim": _trimming,
    "e": _escaping, "escape": _escaping, "forceescape": _escaping, "urlencode": _escaping, "xmlattr": _escaping,
    "safe": _writing_out, "string": _writing_out, "truncate": _writing_out,
    "pprint": _small, "striptags": _small,
}  # fmt: skip
