"""How long a text a grammar in the engine's form prescribes at most, without running it. Pure.

Where the next byte is the only possible one the engine goes on to the one after it, in a single step, however many there
are: `((a{1000}){1000}){1000}` would keep it busy, and all other answers waiting, for an hour.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

MAX_EXTENT = 100_000
"""Characters. Somewhat more than the engine can walk through in the time that one step may take."""

_ENOUGH = 2 * MAX_EXTENT
"""Sizes are not counted further."""

_LARK = re.compile(
    r"""(?P<space>\s+|//[^\n]*|\#[^\n]*)
    |(?P<define>^[ \t]*[?!]?(?P<defined>[A-Za-z_]\w*)(?:\.-?\d+)?[ \t]*(?:\[[^\]\n]*\][ \t]*)?:)
    |(?P<string>"(?:\\.|[^"\\])*")
    |(?P<regex>/(?:\\.|[^/\\])*/)
    |(?P<count>\{\s*(?P<low>\d*)\s*(?:,\s*\d*\s*)?\}|~\s*(?P<times>\d+)(?:\s*\.\.\s*\d+)?)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<other>.)""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
_REGEX = re.compile(
    r"""(?P<space>(?!))
    |(?P<atom>\\[pPxuU]\{[^}]*\}|\\.|\[\^?\]?(?:\\.|[^\]\\])*\])
    |(?P<count>\{\s*(?P<low>\d*)\s*(?:,\s*\d*\s*)?\})
    |(?P<mark>\(\?(?:[a-zA-Z-]+\)|P?<\w+>|[:=!]|<[=!]|[a-zA-Z-]+:))
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)


def is_too_long(grammar: str) -> bool:
    """Whether a text that is prescribed may be longer than `MAX_EXTENT`; a grammar in the engine's form is asked for."""
    if not grammar.lstrip().startswith("{"):
        return lark_extent(grammar) > MAX_EXTENT
    parts: list[dict[str, Any]] = json.loads(grammar).get("grammars", [])
    return any(
        lark_extent(part.get("lark_grammar") or "") > MAX_EXTENT
        or any(regex_extent(pattern) > MAX_EXTENT for pattern in _patterns(part.get("json_schema")))
        for part in parts
    )


def regex_extent(source: str) -> int:
    """Characters that an expression takes with each repetition at its least, and at least once, and the longest choices."""
    sizes = _Sizes()
    for found in _REGEX.finditer(source):
        kind, text = found.lastgroup, found.group()
        if found["count"] is not None:
            sizes.repeat(found["low"])
        elif found["mark"] is not None:
            if not text.endswith(")"):
                sizes.open()
        elif kind == "other" and text in "()|":
            sizes.structure(text)
        elif kind != "other" or text not in "*+?^$":
            sizes.add(1)
    return sizes.total()


def lark_extent(source: str) -> int:
    """The same of a Lark grammar. What a rule that refers to itself says of itself counts for nothing."""
    inner = "%json" in source or "%regex" in source  # their texts may be expressions
    definitions: dict[str, list[re.Match[str]]] = {}
    tokens: list[re.Match[str]] = []
    for found in _LARK.finditer(source):
        if found["define"] is not None:
            tokens = definitions.setdefault(found["defined"], [])
        elif found["space"] is None:
            tokens.append(found)
    sizes: dict[str, int] = {}
    for name in _order(definitions):
        sizes[name] = _size(definitions[name], sizes, inner)
    return max(sizes.values(), default=0)


def _size(tokens: Iterable[re.Match[str]], known: Mapping[str, int], inner: bool) -> int:
    sizes = _Sizes()
    for found in tokens:
        text = found.group()
        if found["count"] is not None:
            sizes.repeat(found["low"] or found["times"] or "")
        elif found["name"] is not None:
            sizes.add(known.get(text, 0))
        elif found["string"] is not None:
            sizes.add(max(len(text) - 2, regex_extent(text[1:-1]) if inner else 0))
        elif found["regex"] is not None:
            sizes.add(regex_extent(text[1:-1]))
        elif text in "()|[]":
            sizes.structure({"[": "(", "]": ")"}.get(text, text))
    return sizes.total()


def _order(definitions: Mapping[str, list[re.Match[str]]]) -> list[str]:
    """The names, each after those it refers to, as far as they do not refer to each other."""
    order: list[str] = []
    seen: set[str] = set()
    for first in definitions:
        stack = [(first, False)]
        while stack:
            name, done = stack.pop()
            if done:
                order.append(name)
            elif name not in seen:
                seen.add(name)
                stack.append((name, True))
                used = {found["name"] for found in definitions[name] if found["name"] is not None}
                stack += [(other, False) for other in used if other in definitions]
    return order


def _patterns(schema: Any) -> list[str]:
    """The texts of a schema that may be expressions."""
    found: list[str] = []
    stack = [schema]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            if isinstance(value.get("pattern"), str):
                found.append(value["pattern"])
            if isinstance(value.get("patternProperties"), dict):
                found += value["patternProperties"]
            stack += value.values()
        elif isinstance(value, list):
            stack += value
    return found


class _Sizes:
    """Sizes of sequences, choices, groups and repetitions as they are read from left to right."""

    def __init__(self) -> None:
        self._stack: list[tuple[int, int]] = []
        self._longest = self._before = self._last = 0
        """The longest choice of this group, what the current one has before its last piece, and that."""

    def add(self, size: int) -> None:
        self._before = min(self._before + self._last, _ENOUGH)
        self._last = size

    def repeat(self, digits: str) -> None:
        digits = digits.lstrip("0")
        times = int(digits or 1) if len(digits) < 8 else _ENOUGH
        self._last = min(self._last * times, _ENOUGH)

    def open(self) -> None:
        self._stack.append((self._longest, self._before + self._last))
        self._longest = self._before = self._last = 0

    def structure(self, mark: str) -> None:
        if mark == "(":
            self.open()
        elif mark == "|":
            self._longest = self.total_here()
            self._before = self._last = 0
        elif self._stack:
            size = self.total_here()
            self._longest, self._before = self._stack.pop()
            self._last = size

    def total_here(self) -> int:
        return max(self._longest, self._before + self._last)

    def total(self) -> int:
        while self._stack:
            self.structure(")")
        return min(self.total_here(), _ENOUGH)
