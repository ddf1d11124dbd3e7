"""Messages of the assistant and their pieces in OpenAI's shape, with calls as today's clients read them or older ones."""

from __future__ import annotations

from typing import Any

from puna.service.chat import CallArguments, CallBegin, Event, Message, Reasoning, Text
from puna.service.chat_answers import ChatAnswer


def delta_of(event: Event, *, legacy: bool) -> dict[str, Any] | None:
    """A stream's `delta`; a call's id and name are in its first one only. None for what `legacy` clients cannot be told."""
    if isinstance(event, Text):
        return {"content": event.text}
    if isinstance(event, Reasoning):
        return {"reasoning_content": event.text}
    if legacy:
        return _legacy_delta(event)
    if isinstance(event, CallBegin):
        function = {"name": event.name, "arguments": ""}
        return {"tool_calls": [{"index": event.index, "id": event.id, "type": "function", "function": function}]}
    return {"tool_calls": [{"index": event.index, "function": {"arguments": event.text}}]}


def _legacy_delta(event: CallBegin | CallArguments) -> dict[str, Any] | None:
    if event.index > 0:
        return None
    if isinstance(event, CallBegin):
        return {"function_call": {"name": event.name, "arguments": ""}}
    return {"function_call": {"arguments": event.text}}


def message_object(message: Message, *, legacy: bool) -> dict[str, Any]:
    """The whole message. Its content is null beside calls, and an empty text where the model said nothing at all."""
    shown: dict[str, Any] = {"role": "assistant", "content": message.content}
    if message.content is None and not message.tool_calls:
        shown["content"] = ""
    if message.reasoning_content is not None:
        shown["reasoning_content"] = message.reasoning_content
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in message.tool_calls
    ]
    if calls and legacy:
        shown["function_call"] = calls[0]["function"]
    elif calls:
        shown["tool_calls"] = calls
    return shown


def finish_reason(answer: ChatAnswer, *, legacy: bool) -> str:
    """OpenAI's word for why an answer ended."""
    return "function_call" if legacy and answer.finish == "tool_calls" else answer.finish
