"""Functionary 3.1 and 3.2.

3.1, with Llama's tag before code:

Let me look.<function=get_weather>{"city": "Paris"}</function>

3.2, in which the prompt ends with the first mark:

>>>all
Let me look.>>>get_weather
{"city": "Paris"}>>>now
{}
"""

from __future__ import annotations

import json
import re

from puna.chat.formats.arguments import arguments, kind_of, properties
from puna.chat.formats.bodies.named import Named
from puna.chat.formats.bodies.stepped import MAX_NAME
from puna.chat.formats.description import Calls, Description
from puna.chat.formats.emitter import Emitter
from puna.chat.formats.ids import new_call_id
from puna.chat.formats.json_text import JsonValue, escaped
from puna.chat.formats.plan import Tool, TurnPlan, TurnRequest
from puna.chat.formats.scanner import marks_of
from puna.chat.formats.stepped import SteppedParser
from puna.outline import Free, Node, Outline, Part, Repeat, alt, as_constraint, seq
from puna.types import Constraint, Trigger

FUNCTIONARY3_1 = Description(
    name="functionary-v3.1",
    calls=Calls(body=Named(behind=">"), call_begin="<function=", call_end="</function>"),
    dropped=("<|python_tag|>",),
)

MARK, TO_ALL = ">>>", "all"
_TEXT = marks_of(MARK)
_LINE = marks_of("\n")


class Functionary:
    """3.2: a row of messages, each with a line that says to whom it is."""

    name = "functionary-v3.2"

    def plan(self, request: TurnRequest) -> TurnPlan:
        """How that turn is to be generated and read."""
        begun = not request.continues and request.prompt.rstrip(" ").endswith(MARK)
        tools = request.tools if request.choice != "none" else ()
        return TurnPlan(
            format=self.name,
            parser=lambda: FunctionaryParser(tools, begun=begun),
            constraint=_constraint(request, begun=begun),
        )


def _constraint(request: TurnRequest, *, begun: bool) -> Constraint | None:
    choice = request.choice if request.tools else "none"
    mark = "" if begun else MARK
    if choice == "none" and request.answer is None:
        if not request.tools:
            return None
        return as_constraint(Outline(seq(f"{TO_ALL}\n" if begun else "", Free(ends=True, without=(MARK,)))))
    call = alt([seq(f"{tool.name}\n", arguments(tool)) for tool in request.tools]) if request.tools else seq()
    more: Node = Repeat(seq(MARK, call)) if request.parallel else seq()
    if choice == "auto" and request.answer is None:
        names = "|".join(re.escape(tool.name) for tool in request.tools)
        first = "^|" if begun else ""
        trigger = Trigger("pattern", rf"(?:{first}{MARK})((?:{names})\n)")
        return Constraint("outline", as_constraint(Outline(seq(call, more))).source, triggers=(trigger,))
    options: list[Node] = []
    if request.answer is not None and choice != "required":
        options.append(seq(f"{TO_ALL}\n" if begun else "", Part(request.answer)))
    if choice != "none":
        options.append(seq(mark, call, more))
    return as_constraint(Outline(alt(options)))


def _code(tool: Tool) -> str:
    """The argument of a tool that takes one text and no more; empty for others."""
    named = list(properties(tool) or ())
    return named[0] if len(named) == 1 and kind_of(tool, named[0]) == "string" else ""


class FunctionaryParser(SteppedParser):
    """Reads message after message. It is in one of a few states, each a method."""

    def __init__(self, tools: tuple[Tool, ...], *, begun: bool) -> None:
        """`begun` is whether the prompt ends with a mark; the output begins in the middle of a message to all otherwise."""
        self._tools = {tool.name: tool for tool in tools}
        super().__init__(Emitter(new_call_id, trim=bool(tools)))
        self._line = ""
        self._mark = ""
        """What came before that line."""
        self._value = JsonValue()
        self._code = ""
        """The argument that code would be, of the call that is read."""
        self._state = self._header if begun else self._text

    def _end(self, *, cut: bool) -> None:
        if self._state == self._header and not cut:
            self._out.text(self._mark + self._line)
        if self._state == self._in_code and not cut:
            self._out.arguments('"}')
        super()._end(cut=cut)

    def _header(self) -> bool:
        """To whom the message is."""
        text, mark = self._scanner.until(_LINE)
        self._line += text
        name = self._line.strip()
        if mark and name == TO_ALL:
            self._state = self._text
        elif mark and name in self._tools:
            self._out.begin(name)
            self._value, self._code = JsonValue(), _code(self._tools[name])
            self._state = self._arguments
        elif mark or len(self._line) > MAX_NAME:
            self._out.text(self._mark + self._line + mark)
            self._state = self._text
        else:
            return False
        self._line = self._mark = ""
        return True

    def _text(self) -> bool:
        text, mark = self._scanner.until(_TEXT if self._tools else marks_of())
        self._out.text(text)
        return self._next(mark)

    def _arguments(self) -> bool:
        if not self._value.begun:
            self._scanner.space()
            if self._scanner.empty:
                return False
            if self._scanner.peek() != "{":
                self._out.arguments(f'{{{json.dumps(self._code, ensure_ascii=False)}: "' if self._code else "")
                self._state = self._in_code if self._code else self._rest
                return True
        self._out.arguments(self._value.read(self._scanner))
        if not self._value.done:
            return False
        self._state = self._rest
        return True

    def _in_code(self) -> bool:
        """Code instead of arguments."""
        text, mark = self._scanner.until(_TEXT)
        self._out.arguments(escaped(text) + ('"}' if mark else ""))
        return self._next(mark)

    def _rest(self) -> bool:
        """What is behind arguments, or is none, is left out."""
        _, mark = self._scanner.until(_TEXT)
        return self._next(mark)

    def _next(self, mark: str) -> bool:
        if mark:
            self._mark, self._state = mark, self._header
        return bool(mark)
