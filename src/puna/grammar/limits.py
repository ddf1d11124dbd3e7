"""Bounds on a grammar's text, enforced before any parser with a stack of its own sees it. Pure."""

from __future__ import annotations

import re

from puna.errors import InvalidRequest

MAX_BYTES = 512 * 1024
MAX_NESTING = 100
MAX_RULES = 1000


def check_text(source: str, *, param: str) -> None:
    """Raise `InvalidRequest` for a grammar that is too large, nested too deeply or has too many rules."""
    if len(source.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise InvalidRequest(f"the grammar is larger than {MAX_BYTES // 1024} KiB", param=param)
    if "\0" in source:
        raise InvalidRequest("the grammar holds a NUL character", param=param)
    if deepest_nesting(source) > MAX_NESTING:
        raise InvalidRequest(f"the grammar is nested deeper than {MAX_NESTING} levels", param=param)
    if source.count("::=") > MAX_RULES:
        raise InvalidRequest(f"the grammar has more than {MAX_RULES} rules", param=param)


def deepest_nesting(source: str) -> int:
    """How deeply brackets nest, those inside quotes not counted."""
    depth = deepest = 0
    quote = ""
    escaped = False
    for char in source:
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif quote:
            if char == quote:
                quote = ""
        elif char == '"':
            quote = char
        elif char in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in ")]}":
            depth = max(0, depth - 1)
    return deepest


_QUANTIFIER = r"(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})"
_AGAIN = r"(?:[*+]|\?\?|\{[0-9]+(?:,[0-9]*)?\})"
_DOUBLED = re.compile(rf"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|({_QUANTIFIER}\??{_AGAIN})", re.DOTALL)


def check_regex(source: str) -> None:
    """Raise `InvalidRequest` where a repetition is repeated, as in `a**`: nobody means that."""
    for found in _DOUBLED.finditer(source):
        if found.group(1):
            raise InvalidRequest(
                f"the expression cannot be used: at character {found.start() + 1} a repetition is repeated", param="regex"
            )
