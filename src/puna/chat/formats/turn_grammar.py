"""The grammar of a turn that is written as a description says."""

from __future__ import annotations

import re

from puna.chat.formats.description import Calls, Description
from puna.chat.formats.plan import Tool, TurnRequest
from puna.outline import EMPTY, Branch, Free, Node, Outline, Part, Pattern, Repeat, alt, as_constraint, seq
from puna.types import Constraint, Span, Trigger

_GAP = Pattern(r"[ \n]{0,2}")


def constrain(description: Description, request: TurnRequest, *, open: bool) -> Constraint | None:
    """What holds the output to the request, None if all output is right. `open` is whether it begins inside thoughts."""
    calls = description.calls
    choice = request.choice if request.tools and calls else "none"
    if calls and choice == "auto" and request.answer is None:
        root = section(calls, request, lazy=True)
        return _with_triggers(root, _trigger(calls, _span(description, open=open)))
    if choice == "none" and request.answer is None:
        if not (calls and request.tools and calls.opener):
            return None
        forbidden = Free(ends=True, without=(calls.opener,))
        return as_constraint(Outline(_after_thoughts(description, forbidden, open=open, gap=False)))
    options: list[Node] = []
    if request.answer is not None and choice != "required":
        answer = Part(request.answer)
        options.append(seq(description.answer_begin, answer, description.answer_end))
    if calls and choice != "none":
        options.append(section(calls, request))
    return as_constraint(Outline(_after_thoughts(description, alt(options), open=open, gap=True)))


def section(calls: Calls, request: TurnRequest, *, lazy: bool = False) -> Node:
    """All calls of a turn, at least one. `lazy` leaves the blanks behind the first mark open: a token may hold both."""
    single = alt([_call(calls, tool) for tool in request.tools])
    first, begin = single, calls.begin
    if lazy and calls.opener:
        opening = begin or calls.call_begin
        mark = opening.strip()
        blanks = Pattern(r"\s{0,4}") if opening.rstrip() != opening else EMPTY
        first = alt([_call(calls, tool, bare=not begin) for tool in request.tools])
        if begin:
            begin = ""
        first = seq(mark, blanks, "[" if calls.array else "", first)
    else:
        first = seq(begin, "[" if calls.array else "", single)
    more: Node = EMPTY
    if request.parallel and calls.parallel:
        more = Repeat(seq(calls.between, single))
    return seq(first, more, "]" if calls.array else "", calls.end)


def _call(calls: Calls, tool: Tool, *, bare: bool = False) -> Node:
    return seq("" if bare else calls.call_begin, calls.body.node(tool), calls.call_end)


def _after_thoughts(description: Description, rest: Node, *, open: bool, gap: bool) -> Node:
    """The rest of the turn, with thoughts before it if they are open, or if the model opens them."""
    thinking = description.thinking
    if thinking is None:
        return rest
    behind = seq(_GAP, rest) if gap else rest
    thought = Free((Branch(thinking.end.strip(), behind),))
    if open or thinking.always:
        return thought
    return alt([seq(thinking.begin.strip(), thought), rest])


def _span(description: Description, *, open: bool) -> Span | None:
    thinking = description.thinking
    if thinking is None or thinking.calls_end:
        return None
    return Span(thinking.begin.strip(), thinking.end.strip(), open or thinking.always, thinking.again)


def _trigger(calls: Calls, span: Span | None) -> Trigger:
    if calls.bare:
        return Trigger("pattern", rf"^\s*({re.escape(calls.trigger)})", outside=span)
    return Trigger("word", calls.trigger or calls.opener, outside=span)


def _with_triggers(root: Node, *triggers: Trigger) -> Constraint:
    constraint = as_constraint(Outline(root))
    return Constraint(constraint.kind, constraint.source, triggers=triggers)
