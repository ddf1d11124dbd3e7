"""How a family writes reasoning and calls, in words of data. Grammar, triggers and parser all come from here.

**To add a family**, write a module in `families/` that is headed by a sample of raw output and holds its `Description`
(or a function that makes one from a template's source), and give it a line in `table.py`. What there is to choose from:

- `Thinking`: the tags around thoughts.
- `Calls`: the marks around a section of calls and around each call, and a `Body`: how the call itself is written.
  - `bodies.envelope.Envelope`: a JSON object that holds name and arguments.
  - `bodies.named.Named`: the name as text, then the arguments as a JSON object.
  - `bodies.tagged.Tagged`: the name, then each argument between tags, strings without quotes.
  - `bodies.elements.Elements`: the name, then elements within elements.
  - `bodies.quoted.Quoted`: the name, then an object with quotes of the format's own.
  - `bodies.pythonic.Pythonic`: `name(key="value")`.
- `Description.dropped`: marks that only wrap the answer.

Texts are written as the template writes them, blanks and line ends included: that is what the grammar holds output to. The
parser looks for the same texts without the blanks at their ends, and takes any blanks around them.

A family of another kind has a `Body` of its own (a class with `node` and `reader`), or where even the frame is different, as
with harmony, a class of its own with `name` and `plan`. Each family has a file of cases in `tests/unit/chat/formats/`,
and a line in `docs/chat-formats.md`, which `python -m tests.unit.chat.formats.matrix` writes.

What the parser does with output that is not as it should be:

- A call that is none (no name can be read) is text: its content without the marks around it.
- A call that has begun and then breaks keeps what it has; what is left of it, up to its closing mark, is left out.
- Arguments in JSON are passed on as they were written, be they valid or not.
- A tagged argument that is no JSON where the schema wants some is a string.
- Text where a call should come is text, and so is all that follows up to the next mark. Closing marks that close nothing are
  left out.
- Output that is cut off keeps what has come; a call without its name yet is left out, and so is half a mark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from puna.chat.formats.emitter import Emitter
from puna.chat.formats.ids import new_call_id
from puna.chat.formats.plan import Tool
from puna.chat.formats.scanner import Scanner
from puna.outline import Node

Verdict = Literal["more", "done", "broken"]
"""What a reader needs or found: more text, the end of its call, or that it cannot be one, or not be one any more."""


class Reader(Protocol):
    """Reads one call, from behind its opening mark."""

    @property
    def held(self) -> str:
        """What it took before the name was known."""
        ...

    def read(self, scanner: Scanner, out: Emitter) -> Verdict:
        """Take what has come, and say what it is. Nothing behind the call is taken."""
        ...


class Body(Protocol):
    """How the call itself is written, without the marks around it."""

    def node(self, tool: Tool) -> Node:
        """Grammar of a call of this tool."""
        ...

    def reader(self, tools: Sequence[Tool], closers: Sequence[str]) -> Reader:
        """Reads one call. `closers` are the marks that may follow it, without blanks at their ends."""
        ...

    @property
    def opening(self) -> str:
        """How each call begins, whatever the tool. It may be empty."""
        ...

    @property
    def marks(self) -> tuple[str, ...]:
        """Texts within that may be control tokens."""
        ...

    @property
    def closing(self) -> tuple[str, ...]:
        """Texts that are left out where they close nothing. None that ordinary text may hold."""
        ...


@dataclass(frozen=True)
class Thinking:
    """Tags around thoughts."""

    begin: str = "<think>"
    end: str = "</think>"
    gap: str = "\n\n"
    """What comes between the end and the answer."""
    lead: str = "\n"
    """What comes between the beginning and the thoughts."""
    always: bool = False
    """Whether output begins with thoughts even if neither the prompt nor the output itself opens them."""
    again: bool = False
    """Whether there may be thoughts anywhere between text and calls, not at the beginning only."""
    calls_end: bool = False
    """Whether a call ends thoughts that are open, without their end tag."""
    bare_end: bool = False
    """Whether a turn without thoughts begins with the end tag."""


@dataclass(frozen=True)
class Calls:
    """How calls are written."""

    body: Body
    begin: str = ""
    """What opens a section of calls. Empty where each call stands for itself."""
    end: str = ""
    """What closes it."""
    also: tuple[str, ...] = ()
    """Other ways to write what opens it, without blanks at the ends."""
    call_begin: str = ""
    call_end: str = ""
    between: str = ""
    """What comes between two calls."""
    array: bool = False
    """Whether the calls of a section are the items of a JSON array, whose brackets are not part of the marks."""
    brackets: tuple[str, str] = ("[", "]")
    """How that array begins and ends, with the blanks inside."""
    bare: bool = False
    """Whether calls have no mark, and are told by what they begin with at the beginning of the answer."""
    parallel: bool = True
    """Whether the format has more than one call in a turn at all."""
    word: bool = False
    """Whether the opening mark is ordinary text, and stays text where no call follows."""
    exact: bool = False
    """Whether blanks at the end of the opening mark are part of a control token."""
    trigger: str = ""
    """The text that a call is first told by, if not all of the opening mark; without blanks at its end."""
    silent: tuple[str, ...] = ()
    """Names that are called to say that no tool is needed: such calls are left out, and the first of them may be called."""
    new_id: Callable[[], str] = new_call_id
    """Makes ids for calls that have none in the output."""

    @property
    def opener(self) -> str:
        """The mark that calls are found by, without blanks; empty for bare ones."""
        return (self.begin or self.call_begin).strip()

    @property
    def openers(self) -> tuple[str, ...]:
        """All marks that calls are found by."""
        return tuple(filter(None, (self.opener, *self.also)))

    @property
    def closers(self) -> tuple[str, ...]:
        """The marks that may follow a call, without blanks."""
        return tuple(filter(None, (self.call_end.strip(), self.end.strip())))


@dataclass(frozen=True)
class Description:
    """A family's format."""

    name: str
    thinking: Thinking | None = None
    calls: Calls | None = None
    dropped: tuple[str, ...] = ()
    """Marks that wrap the answer and are no part of it."""
    ends: tuple[str, ...] = ()
    """Marks that end the answer: what follows is left out, calls excepted."""
    wrapper: tuple[str, str] = ("", "")
    """Tags around an answer that are ordinary text: they are left out only where the answer begins with the first."""
    answer_begin: str = ""
    """What comes before an answer that is no call."""
    answer_end: str = ""
    answer_first: bool = False
    """Whether there is an answer before calls, be it empty."""
    extra: tuple[str, ...] = ()
    """Further texts that the parser looks at and that may be control tokens, with the blanks that are part of them."""
    stop: tuple[str, ...] = ()
    """Texts at which the turn ends that are no end-of-generation tokens."""
    before: str = ""
    """Blanks that the turn begins with and that belong to the format."""
    after: str = ""
    """The same at its end."""

    def marks(self, *, calls: bool) -> tuple[str, ...]:
        """Every text that may be a control token of the vocabulary and has to be seen, `calls` those of calls as well."""
        found = [*self.dropped, *self.ends]
        if self.thinking:
            found += [self.thinking.begin, self.thinking.end]
        if calls and self.calls:
            found += [*self.calls.openers, self.calls.end, self.calls.call_begin, self.calls.call_end, *self.calls.body.marks]
        return tuple(dict.fromkeys(filter(None, [*self.extra, *map(str.strip, found)])))
