"""A template with thoughts and tools, an answer that has both, and what a client is to make of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from puna.types import Chunk, StopType, Timings, TokenProb
from tests.fakes import Item

TEMPLATE = """\
{%- if tools %}<|im_start|>system
Tools: {% for tool in tools %}{{ tool | tojson }}{% endfor %}<|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}{{ message.content }}
{%- for call in message.tool_calls or [] %}<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% endif %}{% endif %}"""

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Tell the weather.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    },
    {"type": "function", "function": {"name": "now"}},
]

ASKED: dict[str, Any] = {"messages": [{"role": "user", "content": "How is the weather?"}], "tools": TOOLS}

THOUGHT = "I need the weather 😀."
SAID = "Let me see:"
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Zürich {"}}\n</tool_call>'
OTHER_CALL = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
RAW = f"<think>\n{THOUGHT}\n</think>\n\n{SAID}\n{CALL}\n{OTHER_CALL}"
CALLS = [("get_weather", '{"city": "Zürich {"}'), ("now", "{}")]


def pieces(text: str, *cuts: int) -> list[str]:
    """The text, cut in these places."""
    places = [0, *sorted(cuts), len(text)]
    return [text[a:b] for a, b in itertools.pairwise(places)]


def write(texts: Iterable[str], stop_type: StopType = "eos", *, stopping_word: str = "", probs: bool = False) -> list[Item]:
    """A script that writes these texts, a token a byte, and says nothing while a text is empty."""
    items: list[Item] = []
    n = 0
    for text in texts:
        tokens = tuple(text.encode())
        n += len(tokens)
        entries = tuple(TokenProb(token, -0.5, ((token, -0.5),)) for token in tokens) if probs else ()
        items.append(Chunk(text=text, tokens=tokens, probs=entries, slot=0))
    timings = Timings(cache_n=3, prompt_n=4, predicted_n=n)
    items.append(Chunk(slot=0, timings=timings, stop_type=stop_type, stopping_word=stopping_word))
    return items


def join(frames: Iterable[dict[str, Any]], index: int = 0) -> dict[str, Any]:
    """The message that a client makes out of a stream's deltas, with `finish_reason`; ids and names come once."""
    message: dict[str, Any] = {"role": None, "content": None, "finish_reason": None}
    calls: list[dict[str, Any]] = []
    for choice in (choice for frame in frames for choice in frame["choices"] if choice["index"] == index):
        delta = choice["delta"]
        if "role" in delta:
            assert message["role"] is None
            message["role"] = delta["role"]
        for name in ("content", "reasoning_content"):
            if delta.get(name) is not None:
                message[name] = (message.get(name) or "") + delta[name]
        for part in delta.get("tool_calls", ()):
            if part["index"] == len(calls):
                assert part["type"] == "function" and part["id"] and part["function"]["arguments"] == ""
                calls.append({"id": part["id"], "type": "function", "function": dict(part["function"])})
            else:
                assert part["index"] == len(calls) - 1 and part.keys() == {"index", "function"}
                assert part["function"].keys() == {"arguments"}
                calls[-1]["function"]["arguments"] += part["function"]["arguments"]
        if "function_call" in delta:
            part = delta["function_call"]
            whole = message.setdefault("function_call", {"arguments": ""})
            assert "name" not in part or "name" not in whole
            message["function_call"] = {**whole, **part, "arguments": whole["arguments"] + part["arguments"]}
        if choice["finish_reason"] is not None:
            assert message["finish_reason"] is None and delta == {}
            message["finish_reason"] = choice["finish_reason"]
    if calls:
        message["tool_calls"] = calls
    elif message["content"] is None and "function_call" not in message:
        message["content"] = ""
    return message


def without_ids(message: dict[str, Any]) -> dict[str, Any]:
    """The same message with calls that can be compared."""
    calls = message.get("tool_calls", [])
    return {**message, "tool_calls": [(call["function"]["name"], call["function"]["arguments"]) for call in calls]}
