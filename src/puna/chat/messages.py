"""Chat messages as every dialect decodes them, free of any wire format."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from puna.errors import InvalidRequest

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
"""The roles a message may have. `function` is the old name of `tool`."""


class TextPart(msgspec.Struct, frozen=True, tag="text"):
    """A piece of text within a message."""

    text: str


Part = TextPart
"""What a message's content can be made of."""


class ToolCall(msgspec.Struct, frozen=True):
    """A call of a function that the assistant made."""

    id: str
    name: str
    arguments: str = "{}"
    """JSON text as the model wrote it; it need not be valid."""


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a conversation."""

    role: str
    """One of `ROLES`; `check_messages` is where others are refused."""
    content: str | tuple[Part, ...] | None = None
    name: str | None = None
    reasoning_content: str | None = None
    """What the assistant thought before it answered."""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    """The call that a tool's message answers."""

    @property
    def text(self) -> str:
        """All text of the content, parts joined by newlines; empty when there is none."""
        if self.content is None:
            return ""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(part.text for part in self.content)


def check_messages(messages: Sequence[Message]) -> None:
    """Raise `InvalidRequest` when there are no messages, or one has a role nobody knows."""
    if not messages:
        raise InvalidRequest("messages must not be empty", param="messages")
    for index, message in enumerate(messages):
        if message.role not in ROLES:
            roles = ", ".join(ROLES)
            raise InvalidRequest(
                f"unknown role {message.role[:40]!r}; a message's role is one of: {roles}", param=f"messages.{index}.role"
            )


def as_template_value(message: Message, *, as_parts: bool) -> dict[str, Any]:
    """The JSON-like form that chat templates read. Content is always there, as a list of parts when `as_parts`.

    Text in one part and the same text as a plain string give equal values, so that a client that changes its mind
    between turns keeps its cached prefix.
    """
    value: dict[str, Any] = {"role": message.role}
    value["content"] = [{"type": "text", "text": message.text}] if as_parts else message.text
    if message.name is not None:
        value["name"] = message.name
    if message.reasoning_content is not None:
        value["reasoning_content"] = message.reasoning_content
        # The name that gpt-oss templates read it by.
        value["thinking"] = message.reasoning_content
    if message.tool_calls:
        value["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _arguments(call.arguments)}}
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        value["tool_call_id"] = message.tool_call_id
    return value


def _arguments(text: str) -> Any:
    # Templates want an object. Text that is none goes through as it is: a damaged call must not end the conversation.
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text
