"""What is asked of a turn, and what a format makes of it: how the output is constrained, shown and parsed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import msgspec

from puna.chat.events import Event
from puna.types import Constraint

Choice = Literal["none", "auto", "required"]
"""Whether calls are forbidden, left to the model, or demanded. A named tool is `required` with that tool alone."""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A function that the model may call."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = {}
    """JSON schema of its arguments, an object's."""
    strict: bool = False
    """Whether a keyword of the schema that cannot be enforced is an error."""


class TurnRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of one turn of the assistant."""

    tools: tuple[Tool, ...] = ()
    choice: Choice = "auto"
    parallel: bool = True
    """Whether there may be more than one call."""
    prompt: str = ""
    """The rendered prompt. Its end says what the turn begins with: whether thinking is open already, say."""
    continues: bool = False
    """Whether the prompt ends within the answer, which goes on."""
    answer: Constraint | None = None
    """What the answer itself, thinking and calls left aside, has to belong to."""
    separate_reasoning: bool = True
    """Whether thinking is told from the answer; if not, all of it is text as the model wrote it."""
    budget: int = -1
    """Most tokens of thinking; -1 for no limit."""


class Parser(Protocol):
    """Turns raw output into events, piece by piece, the same whatever the pieces are."""

    def feed(self, text: str) -> list[Event]:
        """Events that are certain after the next piece. Nothing is held back that must be text."""
        ...

    def finish(self, *, cut: bool = False) -> list[Event]:
        """The rest, when the output has ended, wherever that was. Never raises for what a model wrote.

        `cut` is whether anything but the model itself ended it, a limit or a stop string: an end that may be half a mark is
        left out then, and is text otherwise.
        """
        ...


class Thoughts(msgspec.Struct, frozen=True):
    """The texts around thoughts."""

    begin: str
    end: str
    open: bool = False
    """Whether the output begins inside thoughts."""
    closing: str = ""
    """What ends them when it is written in their middle, and lets the answer begin."""


class TurnPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How one turn is generated and read."""

    format: str
    """Name of the format."""
    parser: Callable[[], Parser]
    """Makes a parser for one answer; each answer of several has its own."""
    constraint: Constraint | None = None
    """With triggers where calls are left to the model."""
    preserved: tuple[str, ...] = ()
    """Texts of control tokens that the parser has to see; those that a vocabulary does not have are left out."""
    stop: tuple[str, ...] = ()
    """Further stop strings."""
    thinking: Thoughts | None = None
    """How thoughts are told in the output, for whoever limits them; None for a format without."""
    forced_open: str = ""
    """Text that the model is taken to have written before its first token, because the prompt ends with it."""


class Format(Protocol):
    """One family's way of writing reasoning and calls. Grammar, triggers and parser come from one description."""

    @property
    def name(self) -> str: ...

    def plan(self, request: TurnRequest) -> TurnPlan:
        """How that turn is to be generated and read. Raises `InvalidRequest` for what cannot be enforced."""
        ...
