"""Chat messages as every dialect decodes them, free of any wire format."""

from __future__ import annotations

from collections.abc import Sequence

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
