"""The grammar of a turn that is written as a description says."""

from __future__ import annotations

import re
from typing import Literal

from puna.chat.formats.description import Calls, Description
from puna.chat.formats.plan import Tool, TurnRequest
from puna.outline import EMPTY, Branch, Free, Node, Outline, Part, Pattern, Repeat, alt, as_constraint, seq
from puna.types import Constraint, Span, Trigger

_GAP = Pattern(r"[ \n]{0,3}")


def constrain(description: Description, request: TurnRequest, *, open: bool, closed: bool = False) -> Constraint | None:
    """What holds the output to the request, None if all output is right. `open` is whether it begins inside thoughts, `closed`
    whether thoughts have ended before it."""
    calls = description.calls
    choice = request.choice if request.tools and calls else "none"
    if calls and choice == "auto" and request.answer is None:
        root = section(calls, request, "blanks", silent=True)
        return _with_triggers(root, *_triggers(description, calls, _span(description, open=open)))
    turn = _Turn(description, open=open, closed=closed)
    answer_begin = description.answer_begin
    if answer_begin and request.prompt.rstrip().endswith(answer_begin.strip()):
        answer_begin = ""
    if choice == "none" and request.answer is None:
        if not (calls and request.tools and (calls.opener or calls.trigger)):
            return None
        begin = description.thinking.begin.strip() if description.thinking and not open else ""
        first = begin or calls.trigger
        ends = (Branch(description.answer_end.strip(), EMPTY),) if description.answer_end else ()
        without = (calls.opener,) if calls.opener else ()
        forbidden = Free(ends, ends=True, without=without, not_first="" if answer_begin else first)
        return as_constraint(Outline(turn.after_thoughts(seq(answer_begin, forbidden), blanks=False)))
    options: list[Node] = []
    if request.answer is not None and choice != "required":
        options.append(seq(answer_begin, Part(request.answer), description.answer_end))
    called: Node | None = None
    if calls and choice != "none":
        empty = (answer_begin, description.answer_end) if description.answer_first else ()
        options.append(seq(*empty, section(calls, request)))
        called = section(calls, request, "open")
    return as_constraint(Outline(turn.after_thoughts(alt(options), blanks=True, called=called)))


Opening = Literal["whole", "blanks", "open"]
"""Whether a section's first mark is written as it should be, has any blanks behind it, or was written already."""


def section(calls: Calls, request: TurnRequest, opening: Opening = "whole", *, silent: bool = False) -> Node:
    """All calls of a turn, at least one. `silent` is whether that may be the one that says that no tool is needed; an answer
    has to follow it."""
    bodies = alt([seq(calls.body.node(tool), calls.call_end) for tool in request.tools])
    single = seq(calls.call_begin, bodies)
    first = (calls.begin or calls.call_begin) if calls.opener else ""
    if opening != "whole" and first:
        blanks = first[len(first.rstrip()) :]
        loose: Node | str = Pattern(r"\s{0,4}") if blanks and opening == "blanks" else blanks
        mark = alt([seq(text) for text in calls.openers])
        begin = seq("" if opening == "open" else mark, loose) if not calls.exact else seq(first)
    else:
        begin = seq(first)
    array = calls.brackets if calls.array else ("", "")
    more: Node | str = ""
    if request.parallel and calls.parallel:
        more = Repeat(seq(calls.between, single))
    rest = seq(single if calls.begin else bodies, more, array[1], calls.end)
    if silent and calls.silent:
        none = calls.body.node(Tool(name=calls.silent[0]))
        rest = alt([rest, seq(calls.call_begin, none, calls.call_end, array[1], calls.end, "\n", Free(ends=True, low=1))])
    return seq(begin, array[0], rest)


class _Turn:
    """Where in a turn the output begins."""

    def __init__(self, description: Description, *, open: bool, closed: bool) -> None:
        self._description = description
        self._thinking = description.thinking
        self._open = open or (self._thinking is not None and self._thinking.always and not closed)
        self._closed = closed

    def after_thoughts(self, rest: Node, *, blanks: bool, called: Node | None = None) -> Node:
        """The rest of the turn, with thoughts before it if they are open, or if the model opens them.

        `blanks` is whether blanks may come before the rest; `called` are the calls that may end thoughts, without their
        opening mark.
        """
        first = _GAP if blanks and (self._closed or self._description.before) else seq()
        thinking = self._thinking
        if thinking is None or self._closed:
            return seq(first, rest)
        gap = thinking.gap if thinking.gap.strip() else _GAP if blanks else ""
        branches = [Branch(thinking.end.strip(), seq(gap, rest))]
        opener = self._description.calls.opener if self._description.calls and thinking.calls_end else ""
        if opener and called is not None:
            branches.append(Branch(opener, called))
        thought = Free(tuple(branches), without=(opener,) if opener and called is None else ())
        if self._open:
            return thought
        none = Repeat(seq(thinking.end.strip()), 0, 1) if thinking.bare_end else seq()
        return seq(first, alt([seq(thinking.begin.strip(), thought), seq(none, rest)]))


def _span(description: Description, *, open: bool) -> Span | None:
    thinking = description.thinking
    if thinking is None or thinking.calls_end:
        return None
    return Span(thinking.begin.strip(), thinking.end.strip(), open or thinking.always, thinking.again)


def _triggers(description: Description, calls: Calls, span: Span | None) -> list[Trigger]:
    if calls.bare:
        return [Trigger("pattern", rf"^\s*({re.escape(calls.trigger)})", outside=span)]
    words = (calls.trigger,) if calls.trigger else calls.openers
    if words[0].startswith(description.extra or "\0"):  # its first control token alone does not tell it
        return [Trigger("pattern", re.escape(word), outside=span) for word in words]
    return [Trigger("word", word, outside=span) for word in words]


def _with_triggers(root: Node, *triggers: Trigger) -> Constraint:
    constraint = as_constraint(Outline(root))
    return Constraint(constraint.kind, constraint.source, triggers=triggers)
