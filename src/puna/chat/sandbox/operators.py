"""Operators, string formatting and methods, each paid for before it runs.

Methods are allowed by name. A list of what is forbidden would have to know every costly or leaking method of every
Python version; the list of what templates need is short.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable
from typing import Any

from jinja2.exceptions import SecurityError
from jinja2.sandbox import SandboxedEnvironment, SandboxedFormatter

from puna.chat.sandbox.budget import BIG, MAX_INT, Budget, TemplateLimit, active

MAX_WIDTH = 9999
"""Largest width or precision in a format."""
MAX_PRODUCT = 100_000_000
"""Bound on text length times pattern length, for the string methods that are quadratic in CPython."""

_PRINTF = re.compile(r"%(?:\([^)]*\))?[#0\- +]*(\*|\d+)?(?:\.(\*|\d+))?")
_WIDE = re.compile(r"\d{5,}")


def binary(operator: str, function: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Run one binary operator of a template."""
    budget = active()
    budget.tick()
    if operator == "+" and isinstance(left, (str, list, tuple)):
        budget.spend(sys.getsizeof(left) + sys.getsizeof(right))
    elif operator == "*":
        for sequence, count in ((left, right), (right, left)):
            if isinstance(sequence, (str, list, tuple)) and isinstance(count, int):
                _pay_repeated(budget, sequence, max(count, 0))
    elif operator == "%" and isinstance(left, str):
        return printf(left, right)
    elif operator == "**":
        _bounded_power(left, right)
    return _result(budget, function(left, right))


def _pay_repeated(budget: Budget, sequence: str | list[Any] | tuple[Any, ...], count: int) -> None:
    if isinstance(sequence, str):
        budget.spend(len(sequence) * count * (1 if sequence.isascii() else 4))
    else:
        budget.spend(8 * len(sequence) * count)
        budget.bear(budget.weigh(sequence) * count)


def _bounded_power(base: Any, exponent: Any) -> None:
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and abs(base) > 1 and base.bit_length() * exponent > MAX_INT.bit_length():
        raise TemplateLimit("the chat template uses too large a number")


def _result(budget: Budget, value: Any) -> Any:
    # The text of `+` and `*` is paid for already.
    if isinstance(value, str):
        return value if type(value) is str else str.__str__(value)
    return budget.admit(value)


def printf(template: str, arguments: Any) -> str:
    """`template % arguments`, paid for."""
    budget = active()
    cost = sys.getsizeof(template)
    n_fields = 0
    for match in _PRINTF.finditer(template):
        n_fields += 1
        for width in match.groups():
            if width is None:
                continue
            if width == "*" or len(width) > 4:
                raise TemplateLimit("the chat template uses too wide a format")
            cost += int(width)
    # A tuple's members are used once each, anything else can be used by every field.
    cost += budget.weigh(arguments) * (1 if isinstance(arguments, tuple) else n_fields)
    budget.spend(cost)
    return str(budget.admit(str.__mod__(template, arguments)))


class FormatMethod:
    """`str.format` and `str.format_map` of one string."""

    def __init__(self, environment: SandboxedEnvironment, template: str, takes_mapping: bool) -> None:
        self._formatter = _Formatter(environment)
        self._template = template
        self._takes_mapping = takes_mapping

    def __call__(self, *args: Any, **kwargs: Any) -> str:
        active().spend(sys.getsizeof(self._template))
        if self._takes_mapping:
            if kwargs or len(args) != 1:
                raise TypeError("format_map() takes exactly one argument")
            return self._formatter.vformat(self._template, (), args[0])
        return self._formatter.vformat(self._template, args, kwargs)


class _Formatter(SandboxedFormatter):
    def convert_field(self, value: Any, conversion: Any) -> Any:
        active().weigh(value)
        return super().convert_field(value, conversion)

    def format_field(self, value: Any, format_spec: str) -> str:
        if _WIDE.search(format_spec):
            raise TemplateLimit("the chat template uses too wide a format")
        budget = active()
        budget.tick()
        budget.weigh(value)
        text = str(super().format_field(value, format_spec))
        budget.spend(sys.getsizeof(text))
        return text


def bounded_product(text: str, pattern: object) -> None:
    """Refuse a search whose worst case is the product of two long texts."""
    if isinstance(pattern, str) and len(text) * len(pattern) > MAX_PRODUCT:
        raise TemplateLimit("the chat template searches for too long a text")


def grown(text: str, factor: int) -> int:
    """Bytes that an operation may take which makes `text` at most `factor` times larger; small ones pay afterwards."""
    size = sys.getsizeof(text)
    return factor * size if size > BIG else 0


def _same(text: str, *_args: object, **_kwargs: object) -> int:
    return sys.getsizeof(text)


def _nothing(_text: str, *_args: object, **_kwargs: object) -> int:
    return 0


def _folded(text: str, *_args: object) -> int:
    return grown(text, 1 if text.isascii() else 4)


def _padded(text: str, width: int, *_args: object) -> int:
    return 4 * max(len(text), width)


def _expanded(text: str, tabsize: int = 8) -> int:
    return sys.getsizeof(text) + text.count("\t") * max(tabsize, 0)


def _stripped(text: str, chars: str | None = None) -> int:
    bounded_product(text, chars)
    return sys.getsizeof(text)


def _searched_back(text: str, pattern: object, *_args: object) -> int:
    bounded_product(text, pattern)
    return 0


def _parted(text: str, _separator: str) -> int:
    return sys.getsizeof(text)


def _parted_back(text: str, separator: str) -> int:
    bounded_product(text, separator)
    return sys.getsizeof(text)


def _split(text: str, sep: str | None = None, maxsplit: int = -1) -> int:
    n_pieces = len(text) // 2 + 1 if sep is None else text.count(sep) + 1
    if maxsplit >= 0:
        n_pieces = min(n_pieces, maxsplit + 1)
    return 0 if len(text) < BIG else sys.getsizeof(text) + 64 * n_pieces


def _split_back(text: str, sep: str | None = None, maxsplit: int = -1) -> int:
    bounded_product(text, sep)
    return _split(text, sep, maxsplit)


def _split_lines(text: str, keepends: bool = False) -> int:
    return 0 if len(text) < BIG else sys.getsizeof(text) + 64 * len(text)


def replaced(text: str, old: str, new: str, count: int = -1) -> int:
    """Bytes of `text.replace(old, new, count)`, at most."""
    n_found = text.count(old)
    if count >= 0:
        n_found = min(n_found, count)
    return sys.getsizeof(text) + n_found * sys.getsizeof(new)


_TEXT_METHODS: dict[str, Callable[..., int]] = {
    "capitalize": _folded, "casefold": _folded, "lower": _folded, "swapcase": _folded, "title": _folded, "upper": _folded,
    "center": _padded, "ljust": _padded, "rjust": _padded, "zfill": _padded, "expandtabs": _expanded,
    "strip": _stripped, "lstrip": _stripped, "rstrip": _stripped, "removeprefix": _same, "removesuffix": _same,
    "count": _nothing, "find": _nothing, "index": _nothing, "startswith": _nothing, "endswith": _nothing,
    "rfind": _searched_back, "rindex": _searched_back,
    "partition": _parted, "rpartition": _parted_back,
    "split": _split, "rsplit": _split_back, "splitlines": _split_lines, "replace": replaced,
    "isalnum": _nothing, "isalpha": _nothing, "isascii": _nothing, "isdecimal": _nothing, "isdigit": _nothing,
    "isidentifier": _nothing, "islower": _nothing, "isnumeric": _nothing, "isprintable": _nothing, "isspace": _nothing,
    "istitle": _nothing, "isupper": _nothing,
}  # fmt: skip

_OTHER_METHODS: tuple[tuple[type, frozenset[str]], ...] = (
    (dict, frozenset(["copy", "get", "items", "keys", "values"])),
    (list, frozenset(["copy", "count", "index"])),
    (tuple, frozenset(["count", "index"])),
    (float, frozenset(["is_integer"])),
)


def call_method(method: types.BuiltinMethodType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a method of a plain value; raises `SecurityError` for one that templates have no business with."""
    owner: Any = method.__self__
    name = method.__name__
    budget = active()
    # Jinja adds these to every call inside loops and blocks, for those that want its context.
    kwargs.pop("_loop_vars", None)
    kwargs.pop("_block_vars", None)
    if isinstance(owner, str):
        if name == "join":
            return _join(budget, owner, *args, **kwargs)
        cost = _TEXT_METHODS.get(name)
        if cost is not None:
            budget.spend(cost(owner, *args, **kwargs))
            return budget.admit(method(*args, **kwargs))
    for kind, names in _OTHER_METHODS:
        if isinstance(owner, kind) and name in names:
            return budget.admit(method(*args, **kwargs))
    raise SecurityError(f"the method {name!r} of {type(owner).__name__!r} may not be called")


def _join(budget: Budget, separator: str, items: Any) -> str:
    if isinstance(items, str):
        budget.spend(64 * len(items))
    pieces = list(budget.drip(items))
    budget.spend(sum(map(sys.getsizeof, pieces)) + sys.getsizeof(separator) * len(pieces))
    return separator.join(pieces)
