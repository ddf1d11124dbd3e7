"""Where rendering is not that of Hugging Face's `transformers`, and why."""

from __future__ import annotations

QUEUE = "keeps the ids of calls in a list that it changes, which the oracle's sandbox refuses"
MAPPED = "gives `tojson` what `map` made, which the oracle cannot write"

ESCAPED = "marks text as safe, and the oracle then escapes for HTML what is joined to it, which no model has ever read"

WITH_CALLS = ("tool result", "parallel", "reasoning", "odd text", "empty")
WITH_TOOLS = ("tools", *WITH_CALLS)

DIFFERENCES: dict[str, tuple[tuple[str, ...], str]] = {
    "Kimi-K2-Instruct": (WITH_CALLS, QUEUE),
    "Kimi-K2-Thinking": (WITH_CALLS, QUEUE),
    "llama-cpp-deepseek-r1": (WITH_TOOLS, MAPPED),
    "meetkai-functionary-medium-v3.1": (WITH_TOOLS, ESCAPED),
}
"""Conversations that are not rendered as the oracle renders them, if it does at all, and why."""
