"""The format that a description makes."""

from __future__ import annotations

from dataclasses import dataclass

from puna.chat.formats.description import Description, Thinking
from puna.chat.formats.parser import TurnParser
from puna.chat.formats.plain import PlainParser
from puna.chat.formats.plan import Parser, Thoughts, TurnPlan, TurnRequest
from puna.chat.formats.turn_grammar import constrain


@dataclass(frozen=True)
class DescribedFormat:
    """Plans turns of a family by its description."""

    description: Description

    @property
    def name(self) -> str:
        return self.description.name

    def plan(self, request: TurnRequest) -> TurnPlan:
        """How that turn is to be generated and read."""
        description = self.description
        thinking = description.thinking
        opened = opened_thoughts(thinking, request.prompt)
        closed = closed_thoughts(thinking, request.prompt)
        begun = request.continues and not opened
        calls = bool(request.tools) and request.choice != "none" and description.calls is not None

        marks = (*description.dropped, *description.ends, description.wrapper[1])
        marked = calls or any(marks) or (thinking is not None and request.separate_reasoning)

        def parser() -> Parser:
            if not marked:
                return PlainParser()
            return TurnParser(
                description,
                request.tools,
                calls=calls,
                open=bool(opened),
                closed=closed,
                begun=begun,
                separate=request.separate_reasoning,
            )

        return TurnPlan(
            format=description.name,
            parser=parser,
            constraint=constrain(description, request, open=bool(opened), closed=closed or begun),
            preserved=description.marks(calls=bool(request.tools)),
            stop=description.stop,
            forced_open=opened,
            thinking=_thoughts(thinking, open=bool(opened)),
        )


def _thoughts(thinking: Thinking | None, *, open: bool) -> Thoughts | None:
    if thinking is None:
        return None
    begin, end = thinking.begin.strip(), thinking.end.strip()
    return Thoughts(begin, end, open=open or thinking.always, closing=f"{thinking.lead}{end}{thinking.gap}")


def closed_thoughts(thinking: Thinking | None, prompt: str) -> bool:
    """Whether the prompt ends with the end of thoughts."""
    if thinking is None or not prompt.rstrip().endswith(f"{thinking.end.strip()}{thinking.gap}".strip()):
        return False
    if not thinking.gap.strip():
        return True
    # The end and what follows it may be those of any message: only thoughts begin as they do.
    before = prompt[: prompt.rindex(thinking.end.strip())]
    return before.rfind(thinking.begin.strip()) > before.rfind(thinking.end.strip())


def opened_thoughts(thinking: Thinking | None, prompt: str) -> str:
    """The end of the prompt that opens thoughts, with the blanks behind the tag; empty if it does not."""
    if thinking is None:
        return ""
    body = prompt.rstrip()
    tag = thinking.begin.strip()
    return prompt[len(body) - len(tag) :] if tag and body.endswith(tag) else ""
