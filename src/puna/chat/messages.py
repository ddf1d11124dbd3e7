"""Chat messages as every dialect decodes them, free of any wire format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from puna.errors import InvalidRequest

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
"""The roles a message may have. `function` is the old name of `tool`."""


class TextPart(msgspec.Struct, frozen=True, tag="text"):
    """A piece of text within a message."""

    text: str


class MediaPart(msgspec.Struct, frozen=True, tag="media"):
    """A picture or a sound within a message, as the request has it. It has no text: before a template sees a message, a
    `MarkPart` takes its place."""

    kind: Literal["image", "audio", "video", "any"]
    source: str | bytes
    """A data: URI, base64, or an address; or the file itself."""
    at: str
    """Where in the request the part stands, and where its source does."""
    field: str


class MarkPart(msgspec.Struct, frozen=True, tag="mark"):
    """A text that stands for a picture or a sound, and is looked for in what the template writes."""

    text: str


Part = TextPart | MediaPart | MarkPart
"""What a message's content can be made of."""


def content_of(pieces: Sequence[str | MediaPart]) -> str | tuple[Part, ...]:
    """Content made of texts and media. One text alone is the same as a list of one, so that a prompt is found again whichever
    form a client chooses."""
    parts = tuple(TextPart(piece) if isinstance(piece, str) else piece for piece in pieces)
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return parts[0].text
    return parts or ""


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
        """All text of the content, and all marks; empty when there is none. Texts that meet are joined by newlines."""
        if self.content is None:
            return ""
        if isinstance(self.content, str):
            return self.content
        joined = ""
        before: Part | None = None
        for part in self.content:
            if isinstance(part, MediaPart):
                continue
            if isinstance(part, TextPart) and isinstance(before, TextPart):
                joined += "\n"
            joined += part.text
            before = part
        return joined

    @property
    def media(self) -> tuple[MediaPart, ...]:
        """The pictures and sounds of the content, in order."""
        if self.content is None or isinstance(self.content, str):
            return ()
        return tuple(part for part in self.content if isinstance(part, MediaPart))


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
