"""Messages in the JSON-like form that chat templates read."""

from __future__ import annotations

import json
from typing import Any

from puna.chat.capabilities import Capabilities
from puna.chat.messages import Message

_REASONING_FIELDS = ("reasoning_content", "thinking")
"""The names that `transformers` gives to what a message's reasoning is."""


def as_template_value(message: Message, capabilities: Capabilities) -> dict[str, Any]:
    """One message as the template takes it.

    Text in one part and the same text as a plain string give equal values, so that a client that changes its mind
    between turns keeps its cached prefix.
    """
    value: dict[str, Any] = {"role": message.role, "content": _content(message, capabilities)}
    if message.name is not None:
        value["name"] = message.name
    if message.reasoning_content is not None:
        value.update(_reasoning(message.reasoning_content, capabilities))
    if message.tool_calls:
        value["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _arguments(call.arguments, capabilities)},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        value["tool_call_id"] = message.tool_call_id
    return value


def _content(message: Message, capabilities: Capabilities) -> str | list[dict[str, Any]] | dict[str, Any] | None:
    text = message.text
    reasoning = message.reasoning_content
    if message.role == "assistant" and capabilities.reasoning == "blocks":  # all of a conversation's answers, or none
        thoughts = [{"type": "thoughts", "text": reasoning}] if reasoning is not None else []
        return {"blocks": [*thoughts, {"type": "response", "text": text}] if text or not message.tool_calls else thoughts}
    if not text and message.tool_calls and capabilities.empty_content is None:
        return None
    if reasoning is not None and capabilities.reasoning == "parts":
        thought = {"type": "thinking", "thinking": reasoning}
        return [thought, {"type": "text", "text": text}] if text or not message.tool_calls else [thought]
    if reasoning is not None and capabilities.reasoning == "content":
        text = f"<think>\n{reasoning}\n</think>\n\n{text}"
    return [{"type": "text", "text": text}] if capabilities.wants_parts else text


def _reasoning(text: str, capabilities: Capabilities) -> dict[str, str]:
    name = capabilities.reasoning
    if name is None:
        return dict.fromkeys(_REASONING_FIELDS, text)
    return {} if name in ("parts", "blocks", "content") else {name: text}


def _arguments(text: str, capabilities: Capabilities) -> Any:
    if not capabilities.object_arguments:
        return text if text.strip() else "{}"
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        value = text
    if isinstance(value, dict):
        return value
    # A damaged call must not end the conversation.
    return text if capabilities.string_arguments else {"arguments": text}
