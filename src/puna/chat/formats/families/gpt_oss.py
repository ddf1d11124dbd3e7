"""gpt-oss: harmony's channels.

<|channel|>analysis<|message|>It is about the weather.<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather \
<|constrain|>json<|message|>{"city": "Paris"}<|call|>

The recipient may also stand in the header's beginning: <|start|>assistant to=functions.get_weather<|channel|>commentary json
"""

from __future__ import annotations

import re
from collections.abc import Callable

from puna.chat.formats.arguments import arguments
from puna.chat.formats.emitter import Emitter
from puna.chat.formats.ids import new_call_id
from puna.chat.formats.json_text import JsonValue
from puna.chat.formats.plan import Thoughts, TurnPlan, TurnRequest
from puna.chat.formats.scanner import marks_of
from puna.chat.formats.stepped import SteppedParser
from puna.outline import Branch, Free, Node, Outline, Part, Repeat, alt, as_constraint, seq
from puna.types import Constraint, Trigger

CHANNEL, MESSAGE, START, END = "<|channel|>", "<|message|>", "<|start|>", "<|end|>"
CALL, RETURN, CONSTRAIN = "<|call|>", "<|return|>", "<|constrain|>"
_ALL = (CHANNEL, MESSAGE, START, END, CALL, RETURN, CONSTRAIN)
_ROLE = "assistant"
_ANALYSIS = f"{CHANNEL}analysis{MESSAGE}"
_FINAL = f"{CHANNEL}final{MESSAGE}"
_NEXT = f"{END}{START}{_ROLE}"

_TAILS = (f" {CONSTRAIN}json", *(f"{CHANNEL}commentary {kind}json" for kind in ("", CONSTRAIN, f"{CONSTRAIN} ")), "")
"""What comes between a tool's name and the message; LLM-jp leaves a blank before the kind."""

MAX_HEADER = 400
"""Most characters of a header."""

_HEADER = marks_of(MESSAGE, START, END)
_BODY = marks_of(END, CALL, RETURN, START, CHANNEL)
_FIRST = marks_of(CHANNEL, START, MESSAGE, "to=")
_TEXT = marks_of(*_ALL)
_TO = re.compile(r"to=(\S+?)(?=<\||\s|$)")
_NAMED = re.compile(re.escape(CHANNEL) + r"\s*(\w+)")


class Harmony:
    """The format."""

    name = "gpt-oss"

    def plan(self, request: TurnRequest) -> TurnPlan:
        """How that turn is to be generated and read."""
        calls = bool(request.tools) and request.choice != "none"
        return TurnPlan(
            format=self.name,
            parser=lambda: HarmonyParser(calls=calls, separate=request.separate_reasoning, begun=request.continues),
            constraint=_constraint(request),
            preserved=_ALL,
            thinking=Thoughts(_ANALYSIS, END, closing=_NEXT),
        )


def _constraint(request: TurnRequest) -> Constraint | None:
    choice = request.choice if request.tools else "none"
    if choice == "none" and request.answer is None and not request.tools:
        return None
    recipient = " to=functions."
    tails = alt([seq(tail, MESSAGE) for tail in _TAILS])
    begun = alt([seq(tool.name, tails, arguments(tool)) for tool in request.tools]) if request.tools else seq()
    if choice == "auto" and request.answer is None:
        return Constraint(
            "outline",
            as_constraint(Outline(seq(recipient, begun))).source,
            triggers=(
                Trigger("pattern", rf"<\|start\|>{_ROLE}( to=functions\.)"),
                Trigger("pattern", r"^( to=functions\.)"),
                Trigger("pattern", r"<\|channel\|>[a-z]+( to=functions\.)"),
            ),
        )
    options: list[Node] = []
    if choice != "required":
        answer: Node = Part(request.answer) if request.answer else Free(ends=True)
        options.append(seq(_FINAL, answer))
    if choice != "none":
        options += [seq(f"{CHANNEL}commentary{recipient}", begun), seq(recipient, begun)]
    aloud = (_ANALYSIS, f"{CHANNEL}commentary{MESSAGE}") if choice != "required" and not request.answer else (_ANALYSIS,)
    before = [seq(begin, Free((Branch(_NEXT, seq()),))) for begin in aloud]
    return as_constraint(Outline(seq(Repeat(alt(before), 0, None if len(aloud) > 1 else 1), alt(options))))


class HarmonyParser(SteppedParser):
    """Reads message after message: a header, then what it says. It is in one of a few states, each a method."""

    def __init__(self, *, calls: bool, separate: bool, begun: bool = False) -> None:
        """`calls` is whether calls are looked for, `separate` whether thoughts are told from the answer, `begun` whether the
        output begins within a message."""
        self._calls = calls
        self._separate = separate
        super().__init__(Emitter(new_call_id))
        self._header: list[str] = []
        self._length = 0
        self._add: Callable[[str], None] = self._out.text
        self._value = JsonValue()
        self._thinks = False
        self._state = self._body if begun else self._start

    def _start(self) -> bool:
        """The prompt has begun the header, usually; a model that writes none is taken at its word."""
        blanks = self._scanner.space()
        found = self._scanner.take_any(_FIRST)
        if found is None:
            self._header.append(blanks)
            return False
        if found:
            self._header += [blanks, found] if found != MESSAGE else []
            return self._go(self._message if found == MESSAGE else self._in_header)
        self._out.text("".join(self._header) + blanks)
        return self._go(self._loose)

    def _loose(self) -> bool:
        """Text outside of any message."""
        text, mark = self._scanner.until(_TEXT)
        self._out.text(text)
        if not mark:
            return False
        if mark in (CHANNEL, START):
            self._header = [mark]
            return self._go(self._in_header)
        return self._go(self._message) if mark == MESSAGE else True

    def _in_header(self) -> bool:
        text, mark = self._scanner.until(_HEADER)
        self._header.append(text)
        self._length += len(text)
        if mark == MESSAGE:
            return self._go(self._message)
        if mark or self._length > MAX_HEADER:
            self._header, self._length = [mark], 0
            return self._go(self._in_header if mark == START else self._loose)
        return False

    def _message(self) -> bool:
        """A header is complete: what does it announce?"""
        header = "".join(self._header)
        self._header, self._length = [], 0
        to, channel = _TO.search(header), _NAMED.search(header)
        name = to.group(1).removeprefix("functions.") if to else ""
        self._thinks = False
        if name and self._calls:
            self._out.begin(name)
            self._add = self._out.arguments
            return self._go(self._blanks)
        self._thinks = channel is not None and channel.group(1) == "analysis"
        self._add = self._out.reasoning if self._thinks and self._separate else self._out.text
        if self._thinks and not self._separate:
            self._out.text(_ANALYSIS)
        return self._go(self._body)

    def _blanks(self) -> bool:
        self._scanner.space()
        if self._scanner.empty:
            return False
        self._value = JsonValue()
        return self._go(self._arguments if self._scanner.peek() == "{" else self._body)

    def _arguments(self) -> bool:
        """An object: what looks like a mark within its strings is none."""
        self._out.arguments(self._value.read(self._scanner))
        return self._value.done and self._go(self._behind_arguments)

    def _behind_arguments(self) -> bool:
        self._add = _nothing
        return self._go(self._body)

    def _body(self) -> bool:
        text, mark = self._scanner.until(_BODY)
        self._add(text)
        if not mark:
            return False
        if self._thinks and self._separate:
            self._out.end_of_thought()
        elif self._thinks:
            self._out.text(mark)
        if mark in (CHANNEL, START):
            self._header = [mark]
            return self._go(self._in_header)
        return self._go(self._loose)


def _nothing(text: str) -> None:
    """What is behind arguments is left out."""
