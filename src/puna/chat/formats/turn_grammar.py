"""The grammar of a turn that is written as a description says."""

from __future__ import annotations

import re
from typing import Literal

from puna.chat.formats.description import Calls, Description
from puna.chat.formats.plan import TurnRequest
from puna.outline import Branch, Free, Node, Outline, Part, Pattern, Repeat, alt, as_constraint, seq
from puna.types import Constraint, Span, Trigger

_GAP = Pattern(r"[ \n]{0,2}")


def constrain(description: Description, request: TurnRequest, *, open: bool) -> Constraint | None:
    """What holds the output to the request, None if all output is right. `open` is whether it begins inside thoughts."""
    calls = description.calls
    choice = request.choice if request.tools and calls else "none"
    if calls and choice == "auto" and request.answer is None:
        root = section(calls, request, "blanks")
        return _with_triggers(root, _trigger(calls, _span(description, open=open)))
    if choice == "none" and request.answer is None:
        if not (calls and request.tools and (calls.opener or calls.trigger)):
            return None
        begin = description.thinking.begin.strip() if description.thinking and not open else ""
        forbidden = Free(ends=True, without=(calls.opener,) if calls.opener else (), not_first=begin or calls.trigger)
        return as_constraint(Outline(_after_thoughts(description, forbidden, open=open, gap=False)))
    options: list[Node] = []
    if request.answer is not None and choice != "required":
        answer = Part(request.answer)
        options.append(seq(description.answer_begin, answer, description.answer_end))
    called: Node | None = None
    if calls and choice != "none":
        options.append(section(calls, request))
        called = section(calls, request, "open")
    return as_constraint(Outline(_after_thoughts(description, alt(options), open=open, gap=True, called=called)))


Opening = Literal["whole", "blanks", "open"]
"""Whether a section's first mark is written as it should be, has any blanks behind it, or was written already."""


def section(calls: Calls, request: TurnRequest, opening: Opening = "whole") -> Node:
    """All calls of a turn, at least one."""
    bodies = alt([seq(calls.body.node(tool), calls.call_end) for tool in request.tools])
    single = seq(calls.call_begin, bodies)
    first = (calls.begin or calls.call_begin) if calls.opener else ""
    if opening != "whole" and first:
        blanks = first[len(first.rstrip()) :]
        loose: Node | str = Pattern(r"\s{0,4}") if blanks and opening == "blanks" else blanks
        begin = seq("" if opening == "open" else first.strip(), loose)
    else:
        begin = seq(first)
    array = ("[", "]") if calls.array else ("", "")
    more: Node | str = ""
    if request.parallel and calls.parallel:
        more = Repeat(seq(calls.between, single))
    return seq(begin, array[0], single if calls.begin else bodies, more, array[1], calls.end)


def _after_thoughts(description: Description, rest: Node, *, open: bool, gap: bool, called: Node | None = None) -> Node:
    """The rest of the turn, with thoughts before it if they are open, or if the model opens them.

    `called` are the calls that may end thoughts, without their opening mark.
    """
    thinking = description.thinking
    if thinking is None:
        return rest
    branches = [Branch(thinking.end.strip(), seq(_GAP, rest) if gap else rest)]
    opener = description.calls.opener if description.calls and thinking.calls_end else ""
    if opener and called is not None:
        branches.append(Branch(opener, called))
    thought = Free(tuple(branches), without=(opener,) if opener and called is None else ())
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
