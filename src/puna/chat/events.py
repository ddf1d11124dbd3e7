"""What an assistant's turn is made of, in the order in which it comes, and the message that it adds up to.

Parsers of raw output emit these events, and every dialect's encoder reads them; neither knows the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from puna.chat.messages import Message, ToolCall


class Reasoning(msgspec.Struct, frozen=True, tag="reasoning"):
    """The next piece of what the model thinks before, or between, what it says. Never empty."""

    text: str


class Text(msgspec.Struct, frozen=True, tag="text"):
    """The next piece of what the model says. Never empty."""

    text: str


class CallBegin(msgspec.Struct, frozen=True, tag="call_begin"):
    """A call of a tool begins; its name is whole."""

    index: int
    """Calls of one turn are numbered from 0."""
    id: str
    """The model's own id for it where its format has one, else a new one."""
    name: str


class CallArguments(msgspec.Struct, frozen=True, tag="call_arguments"):
    """The next piece of a call's arguments: JSON text, to be joined with the others of that call. Never empty."""

    index: int
    text: str


Event = Reasoning | Text | CallBegin | CallArguments


@dataclass(slots=True)
class Call:
    """A call as far as it has come."""

    id: str
    name: str
    parts: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        return "".join(self.parts)


@dataclass(slots=True)
class MessageBuilder:
    """Adds events up to the whole message. `feed` them in order."""

    reasoning: list[str] = field(default_factory=list)
    content: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def feed(self, events: Iterable[Event]) -> None:
        """Take in the next events. Raises `ValueError` for a call that is out of order."""
        for event in events:
            if isinstance(event, Text):
                self.content.append(event.text)
            elif isinstance(event, Reasoning):
                self.reasoning.append(event.text)
            elif isinstance(event, CallBegin):
                if event.index != len(self.calls):
                    raise ValueError(f"call {event.index} begins after {len(self.calls)} calls")
                self.calls.append(Call(event.id, event.name))
            else:
                self.calls[event.index].parts.append(event.text)

    def message(self) -> Message:
        """The turn as a message; its content is None when nothing was said, its reasoning None when nothing was thought."""
        return Message(
            role="assistant",
            content="".join(self.content) or None,
            reasoning_content="".join(self.reasoning) or None,
            tool_calls=tuple(ToolCall(call.id, call.name, call.arguments or "{}") for call in self.calls),
        )
