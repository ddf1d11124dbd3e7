"""The tags around thoughts that a template knows."""

from __future__ import annotations

import re

from puna.chat.formats.description import Thinking

_TAGS = (
    ("<think>", "</think>"),
    ("<seed:think>", "</seed:think>"),
    ("<mm:think>", "</mm:think>"),
    ("[THINK]", "[/THINK]"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("<thought>", "</thought>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
)
"""The first pair that a template has counts."""


def thinking_of(source: str) -> Thinking | None:
    """The tags, found in the template's source; None if it has none."""
    text = re.sub(r"\{#.*?#\}", "", source, flags=re.DOTALL)
    for begin, end in _TAGS:
        if end in text or (begin in text and begin == "<think>"):
            return Thinking(begin=begin, end=end)
    return None
