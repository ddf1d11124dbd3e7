"""Keeping what users write apart from what the template writes, through a render that mixes them.

A control token's text inside a message is replaced by one private-use character before the template sees it, and put
back afterwards. So a control token found in between is the template's own, whatever the template did with the message:
trimmed it, cut it, joined it, escaped it. Messages without such texts, nearly all, are passed on untouched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from puna.chat.special import SpecialTexts
from puna.errors import InvalidRequest

_PRIVATE = range(0xE000, 0xF900)
_TAKEN = re.compile(r"[\ue000-\uf8ff]|\\u(?:e[0-9a-f]{3}|f[0-8][0-9a-f]{2})", re.IGNORECASE)


class Disguise:
    """The private-use characters of one render, and what each stands for."""

    def __init__(self, special: SpecialTexts, surroundings: Iterable[object]) -> None:
        """`surroundings` is all that may get into the output: none of the characters in use is in there already."""
        self._special = special
        self._surroundings = surroundings
        self._by_text: dict[str, str] = {}
        self._by_mark: dict[str, str] = {}
        self._free: Iterator[int] | None = None

    @property
    def used(self) -> bool:
        """Whether anything was replaced."""
        return bool(self._by_mark)

    def mark(self, text: str) -> str:
        """The character that stands for `text`."""
        found = self._by_text.get(text)
        if found is None:
            found = self._by_text[text] = self.fresh()
            self._by_mark[found] = text
        return found

    def fresh(self) -> str:
        """A character that occurs nowhere else in the render."""
        if self._free is None:
            taken = {_code(found) for text in _texts(self._surroundings) for found in _TAKEN.findall(text)}
            self._free = iter([code for code in _PRIVATE if code not in taken])
        code = next(self._free, None)
        if code is None:
            raise InvalidRequest("the messages hold too many control-token texts and private-use characters", param="messages")
        return chr(code)

    def hide(self, value: Any, keep: frozenset[str] = frozenset()) -> Any:
        """`value` with every control-token text in it replaced, those in `keep` excepted."""
        if isinstance(value, str):
            return self._hide_text(value, keep)
        if isinstance(value, Mapping):
            return {self.hide(key): self.hide(item, keep) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.hide(item, keep) for item in value]
        return value

    def _hide_text(self, text: str, keep: frozenset[str]) -> str:
        found = self._special.find(text)
        spans = [span for span in found if text[span[0] : span[1]] not in keep]
        # Two harmless strings that a template joins can make a control token where they meet.
        spans += [span for span in self._special.loose_ends(text) if not _overlaps(span, found)]
        if not spans:
            return text
        pieces = []
        done = 0
        for start, end in sorted(spans):
            pieces += [text[done:start], self.mark(text[start:end])]
            done = end
        return "".join([*pieces, text[done:]])

    def restore(self, text: str) -> str:
        """`text` with what was hidden back in its place. JSON and Python escape private-use characters alike."""
        if not self._by_mark:
            return text
        return _TAKEN.sub(self._original, text)

    def _original(self, match: re.Match[str]) -> str:
        return self._by_mark.get(chr(_code(match.group())), match.group())


def _code(found: str) -> int:
    return ord(found) if len(found) == 1 else int(found[2:], 16)


def _overlaps(span: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    return any(span[0] < end and start < span[1] for start, end in others)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(list(value.keys()))
        yield from _texts(list(value.values()))
    elif isinstance(value, Iterable):
        for item in value:
            yield from _texts(item)
