"""One answer of a chat turn, as it comes and as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import msgspec

from puna.chat.events import CallArguments, CallBegin, Event, MessageBuilder, Reasoning
from puna.chat.formats.plan import Parser
from puna.chat.messages import Message
from puna.service.answers import Answer
from puna.types import Chunk

NO_ARGUMENTS = "{}"

Finish = Literal["stop", "length", "tool_calls"]


@dataclass(slots=True, kw_only=True)
class ChatAnswer(Answer):
    """What one generation has brought so far, told apart. `read` its chunks in order."""

    parser: Parser
    thinks: bool = False
    """Whether what comes next is thinking, as far as is known."""
    own_stops: frozenset[str] = frozenset()
    """Stop strings that are the format's and nobody's wish: such a stop is the turn's natural end."""
    builder: MessageBuilder = field(default_factory=MessageBuilder)
    without_arguments: bool = False
    """Whether the answer ended before the arguments of its last call began."""

    def read(self, chunk: Chunk) -> tuple[tuple[Event, ...], Chunk]:
        """Take in the next chunk: what is certain now, and the chunk as a caller may see it."""
        if chunk.stop_type == "word" and chunk.stopping_word in self.own_stops:
            chunk = msgspec.structs.replace(chunk, stop_type="eos", stopping_word="")
        self.feed(chunk)
        events = self.parser.feed(chunk.text) if chunk.text else []
        ended = chunk.stop_type != "none"
        if ended:
            events += self.parser.finish(cut=chunk.stop_type != "eos")
        if chunk.tokens:
            self._count(events, len(chunk.tokens))
        if ended or (self.builder.calls or len(events) > 1):
            events = self._with_arguments(events, ended=ended)
        self.builder.feed(events)
        return tuple(events), chunk

    def _with_arguments(self, events: list[Event], *, ended: bool) -> list[Event]:
        """The events with an empty object for every call that turns out to have no arguments."""
        last = self.builder.calls[-1] if self.builder.calls else None
        bare = len(self.builder.calls) - 1 if last is not None and not last.parts else -1
        found: list[Event] = []
        for event in events:
            if isinstance(event, CallArguments):
                bare = -1
            elif isinstance(event, CallBegin):
                if bare >= 0:
                    found.append(CallArguments(bare, NO_ARGUMENTS))
                bare = event.index
            found.append(event)
        if ended and bare >= 0:
            found.append(CallArguments(bare, NO_ARGUMENTS))
            self.without_arguments = True
        return found

    def _count(self, events: list[Event], n_tokens: int) -> None:
        """Tokens that brought nothing yet count for what came last, and those that brought both kinds by their share."""
        if not events:
            self.n_reasoning += n_tokens * self.thinks
            return
        self.thinks = isinstance(events[-1], Reasoning)
        if len(events) == 1:
            self.n_reasoning += n_tokens * self.thinks
            return
        sizes = [(isinstance(event, Reasoning), len(getattr(event, "text", ""))) for event in events]
        total = sum(size for _, size in sizes) or 1
        self.n_reasoning += round(n_tokens * sum(size for thought, size in sizes if thought) / total)

    @property
    def message(self) -> Message:
        """The turn so far; its content is None when nothing was said, its reasoning when nothing was thought."""
        return self.builder.message()

    @property
    def finish(self) -> Finish:
        """Why the turn is over."""
        if self.stop_type == "limit":
            return "length"
        if self.stop_type == "word" and self._in_call:
            return "stop"
        return "tool_calls" if self.builder.calls else "stop"

    @property
    def _in_call(self) -> bool:
        """Whether the answer ended before its last call was complete."""
        if not self.builder.calls or self.without_arguments:
            return self.without_arguments
        try:
            msgspec.json.decode(self.builder.calls[-1].arguments)
        except msgspec.DecodeError:
            return True
        return False


class BothWays:
    """A parser that shows thinking apart from the answer and within it as well."""

    def __init__(self, apart: Parser, inline: Parser) -> None:
        self._apart = apart
        self._inline = inline

    def feed(self, text: str) -> list[Event]:
        return _thoughts(self._apart.feed(text)) + self._inline.feed(text)

    def finish(self, *, cut: bool = False) -> list[Event]:
        return _thoughts(self._apart.finish(cut=cut)) + self._inline.finish(cut=cut)


def _thoughts(events: list[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, Reasoning)]
