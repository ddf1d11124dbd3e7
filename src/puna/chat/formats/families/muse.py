"""Muse Glimmer, whose turn is a row of messages to somebody: to itself, to a tool, to the user.

 to=self<|message|>It is about the weather.<|eom|><|start|>assistant to=get_weather<|message|><atem:function_calls>
<atem:invoke name="get_weather">
<atem:parameter name="city">Paris</atem:parameter>
</atem:invoke>
</atem:function_calls><|eot|>
 to=user<|message|>It is warm.<|eot|>
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from puna.chat.formats.bodies.tagged import Tagged
from puna.chat.formats.description import Reader
from puna.chat.formats.emitter import Emitter
from puna.chat.formats.ids import new_call_id
from puna.chat.formats.plan import Thoughts, Tool, TurnPlan, TurnRequest
from puna.chat.formats.scanner import marks_of
from puna.chat.formats.stepped import SteppedParser
from puna.outline import EMPTY, Branch, Free, Node, Outline, Part, Repeat, alt, as_constraint, seq
from puna.types import Constraint, Trigger

START, MESSAGE, MORE, END = "<|start|>", "<|message|>", "<|eom|>", "<|eot|>"
_SECTION, _SECTION_END = "<atem:function_calls>", "</atem:function_calls>"
_INVOKE = '<atem:invoke name="'
_SELF = f" to=self{MESSAGE}"
_USER = f" to=user{MESSAGE}"
_NEXT = f"{MORE}{START}assistant"

_BODY = Tagged(
    name_begin=_INVOKE,
    name_end='">\n',
    key_begin='<atem:parameter name="',
    key_end='">',
    value_end="</atem:parameter>\n",
    end="</atem:invoke>\n",
)

MAX_HEADER = 400
"""Most characters of a header."""

_TO = re.compile(r"to=(\S+)")
_FIRST = marks_of(START, MESSAGE, "to=")
_HEADER = marks_of(MESSAGE, START, MORE, END)
_ENDS = (MORE, END, START)
_BEHIND = marks_of(_INVOKE, _SECTION, *_ENDS)
_CLOSERS = (_SECTION_END, *_ENDS)


class Muse:
    """The format."""

    name = "muse"

    def plan(self, request: TurnRequest) -> TurnPlan:
        """How that turn is to be generated and read."""
        tools = request.tools if request.choice != "none" else ()
        return TurnPlan(
            format=self.name,
            parser=lambda: MuseParser(tools, separate=request.separate_reasoning, begun=request.continues),
            constraint=_constraint(request),
            preserved=(START, MESSAGE, MORE, END, *_BODY.marks, _SECTION, _SECTION_END),
            stop=(END,),
            thinking=Thoughts(_SELF.strip(), MORE, closing=_NEXT),
        )


def _constraint(request: TurnRequest) -> Constraint | None:
    choice = request.choice if request.tools else "none"
    if choice == "none" and request.answer is None and not request.tools:
        return None
    call = alt(
        [seq(f" to={tool.name}{MESSAGE}{_SECTION}\n", _BODY.node(tool), _SECTION_END) for tool in request.tools] or [EMPTY]
    )
    calls = seq(call, Repeat(seq(_NEXT, call)) if request.parallel else EMPTY)
    if choice == "auto" and request.answer is None:
        names = "|".join(re.escape(tool.name) for tool in request.tools)
        header = rf"( to=(?:{names})<\|message\|>)"
        triggers = (Trigger("pattern", rf"<\|start\|>assistant{header}"), Trigger("pattern", f"^{header}"))
        return Constraint("outline", as_constraint(Outline(calls)).source, triggers=triggers)
    thoughts = Repeat(seq(_SELF, Free((Branch(_NEXT, EMPTY),))))
    options: list[Node] = []
    if choice != "required":
        said: Node = Part(request.answer) if request.answer else Free(ends=True, without=(_SECTION,))
        options.append(seq(_USER, said))
    if choice != "none":
        options.append(calls)
    return as_constraint(Outline(seq(thoughts, alt(options))))


class MuseParser(SteppedParser):
    """Reads message after message: whom it is for, then what it says. It is in one of a few states, each a method."""

    def __init__(self, tools: Sequence[Tool], *, separate: bool, begun: bool = False) -> None:
        """`separate` is whether thoughts are told from the answer, `begun` whether the output begins within a message to the
        user."""
        self._tools = tools
        self._separate = separate
        super().__init__(Emitter(new_call_id))
        if not begun:
            self._out.end_of_thought()  # blanks that come first belong to the format
        self._says = marks_of(*_ENDS, _SECTION if tools else "")
        self._header: list[str] = []
        self._length = 0
        self._thinks = False
        self._reader: Reader = _BODY.reader(tools, _CLOSERS)
        self._n_before = 0
        self._state = self._say if begun else self._start

    def _start(self) -> bool:
        """The prompt has begun the header, usually; a model that writes none is taken at its word."""
        self._out.text(self._scanner.space())
        found = self._scanner.take_any(_FIRST)
        if not found:
            return found is not None and self._go(self._say)
        self._header, self._length = [found], 0
        return self._message() if found == MESSAGE else self._go(self._in_header)

    def _in_header(self) -> bool:
        text, mark = self._scanner.until(_HEADER)
        self._header.append(text)
        self._length += len(text)
        if mark == MESSAGE:
            return self._message()
        if mark or self._length > MAX_HEADER:
            self._header, self._length = [], 0
            return self._go(self._in_header if mark == START else self._say)
        return False

    def _message(self) -> bool:
        """A header is complete: whom is the message for?"""
        found = _TO.search("".join(self._header))
        self._header, self._length = [], 0
        self._thinks = found is not None and found.group(1) == "self"
        if self._thinks and not self._separate:
            self._out.text(_SELF.strip())
        return self._go(self._think if self._thinks else self._say)

    def _think(self) -> bool:
        text, mark = self._scanner.until(marks_of(*_ENDS))
        if self._separate:
            self._out.reasoning(text)
        else:
            self._out.text(text + mark)
        if not mark:
            return False
        if self._separate:
            self._out.end_of_thought()
        return self._after(mark)

    def _say(self) -> bool:
        text, mark = self._scanner.until(self._says)
        self._out.text(text)
        if not mark:
            return False
        return self._begin_call() if mark == _SECTION else self._after(mark)

    def _after(self, mark: str) -> bool:
        return self._go(self._in_header if mark == START else self._between)

    def _between(self) -> bool:
        """A message has ended."""
        self._scanner.space()
        if self._scanner.empty:
            return False
        found = self._scanner.take_any(marks_of(START))
        if found is None:
            return False
        return self._go(self._in_header if found else self._say)

    def _begin_call(self) -> bool:
        self._reader = _BODY.reader(self._tools, _CLOSERS)
        self._n_before = self._out.n_begun
        return self._go(self._call)

    def _call(self) -> bool:
        verdict = self._reader.read(self._scanner, self._out)
        if verdict == "more":
            return False
        if verdict == "broken" and self._out.n_begun == self._n_before:
            self._out.text(self._reader.held)
            return self._go(self._loose)
        return self._go(self._behind)

    def _loose(self) -> bool:
        """What was to be a call is none: text, up to where the section ends."""
        text, mark = self._scanner.until(marks_of(*_CLOSERS))
        self._out.text(text)
        if not mark:
            return False
        return self._go(self._say) if mark == _SECTION_END else self._after(mark)

    def _behind(self) -> bool:
        """Behind a call: another one, or the end of the message. All else is left out."""
        _, mark = self._scanner.until(_BEHIND, leave=True)
        if not mark:
            return False
        if mark == _INVOKE:
            return self._begin_call()
        self._scanner.take(mark)
        return self._begin_call() if mark == _SECTION else self._after(mark)
