"""Grammar of strings without quotes, which go on up to the text that ends them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from puna.chat.formats.plan import Tool
from puna.errors import InvalidRequest
from puna.outline import Branch, Free, Node, alt, seq

_UNQUOTED = ("pattern", "format")
"""Keywords of strings that have no form where strings have no quotes."""


def bare_string(tool: Tool, key: str, schema: Any, end: str, *, quotes: tuple[str, str] = ("", "")) -> Node:
    """A string and its end; it may be in `quotes`.

    Raises `InvalidRequest` for what a strict tool's schema says and cannot be enforced.
    """
    texts = _texts(schema)
    if texts is not None and not any(end.strip() in text for text in texts):
        return seq(alt([seq(text) for text in texts]), end)
    lost = [keyword for keyword in _UNQUOTED if isinstance(schema, Mapping) and keyword in schema]
    why = f"{tool.name}.{key}: '{lost[0]}' is not enforced: this model writes strings without quotes" if lost else ""
    if lost and tool.strict:
        raise InvalidRequest(why, param="tools")
    low, high = _lengths(schema)
    return free_text(end, quotes=quotes, low=low, high=high, lost=why)


def free_text(end: str, *, quotes: tuple[str, str] = ("", ""), low: int = 0, high: int | None = None, lost: str = "") -> Node:
    """Any text of some length and its end; in `quotes` it may hold that end. `lost` says what is not enforced."""
    mark, bare = end.rstrip(), end.strip()
    opening, closing = quotes
    without = tuple(filter(None, (bare if bare != mark else "", opening)))
    text = Free((Branch(mark, seq(end[len(mark) :])),), without=without, low=low, high=high, lost=lost)
    if not closing:
        return text
    return alt([text, seq(opening, Free((Branch(closing, seq(end)),), low=low, high=high, lost=lost))])


def _texts(schema: Any) -> list[str] | None:
    """The strings that a value may be one of, if that is said."""
    if not isinstance(schema, Mapping):
        return None
    values = schema["enum"] if "enum" in schema else [schema["const"]] if "const" in schema else None
    if not isinstance(values, (list, tuple)) or not values or not all(isinstance(value, str) for value in values):
        return None
    return list(values)


def _lengths(schema: Any) -> tuple[int, int | None]:
    low, high = (schema.get("minLength"), schema.get("maxLength")) if isinstance(schema, Mapping) else (None, None)
    return (low if isinstance(low, int) else 0), (high if isinstance(high, int) else None)
