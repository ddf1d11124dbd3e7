"""What a template can take, found out by rendering small conversations with it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from puna.chat import probe
from puna.chat.probe import FIRST, REPLY, RESULTS, SECOND, THOUGHT, TOOLS, USER, Prober, Value

if TYPE_CHECKING:
    from puna.chat.template import ChatTemplate

ReasoningName = Literal["reasoning_content", "reasoning", "thinking", "parts", "blocks", "content"]
"""Where a template reads what an earlier turn thought: a field of the message, a part of its content whose type is
`thinking`, a block of it whose type is `thoughts`, or its content, between `<think>` and `</think>`."""

_FIELDS: tuple[ReasoningName, ...] = ("reasoning_content", "reasoning", "thinking")

_SWITCHES: tuple[tuple[str, Any, Any], ...] = (
    ("enable_thinking", True, False),
    ("thinking", True, False),
    ("reasoning", True, False),
    ("thinking_mode", "enabled", "disabled"),
    ("thinking_budget", -1, 0),
    ("reasoning_effort", "high", "no_think"),
)
"""Variables by which families turn thinking on and off, with the values that do."""


_EFFORTS = ("reasoning_effort", "thinking_effort")
_LEVELS = ("no_think", "none", "minimal", "low", "medium", "high", "xhigh", "max")
"""From nothing to all there is."""


class Capabilities:
    """Answers about one template, each found when first asked for."""

    def __init__(self, template: ChatTemplate) -> None:
        self._template = template
        self._probe = Prober(template)

    # Content and roles.

    @cached_property
    def empty_tools(self) -> list[Value] | None:
        """What stands for "no tools": none, or an empty list where the template walks over the tools without asking."""
        user = [self._text("user", USER)]
        return [] if self._probe.attempt(user) is None and self._probe.attempt(user, []) is not None else None

    @cached_property
    def wants_parts(self) -> bool:
        """Whether content has to be a list of parts, because the template cannot take a string."""
        return not self._probe.shows([{"role": "user", "content": USER}], USER) and self._probe.shows(
            [{"role": "user", "content": [{"type": "text", "text": USER}]}], USER
        )

    @cached_property
    def system(self) -> bool:
        """Whether a system message that comes first is taken and shown."""
        return self._probe.shows([self._text("system", FIRST), self._text("user", USER)], FIRST, USER)

    @cached_property
    def developer(self) -> bool:
        """Whether the template itself knows the developer role; printing any role it is given is not knowing it."""
        return "developer" in self._template.constants and self._probe.shows(
            [self._text("developer", FIRST), self._text("user", USER)], FIRST, USER
        )

    @cached_property
    def several_system(self) -> bool:
        """Whether two system messages at the start are both shown, in their order."""
        user = self._text("user", USER)
        return all(
            self._probe.shows([self._text(role, FIRST), self._text(role, SECOND), user], FIRST, SECOND) for role in self._roles
        )

    @cached_property
    def late_system(self) -> bool:
        """Whether system messages after the first turn are shown, be it before a reply or before the next question."""
        user, reply = self._text("user", USER), self._text("assistant", REPLY)
        return all(
            self._probe.shows([user, system], USER, FIRST) and self._probe.shows([user, reply, system, user], REPLY, FIRST)
            for system in (self._text(role, FIRST) for role in self._roles)
        )

    @cached_property
    def drops_lone_system(self) -> bool:
        """Whether a conversation of a system message alone is taken, but not shown."""
        lone = [self._text("system", FIRST)]
        return self._probe.attempt(lone, self.empty_tools) is not None and not self._probe.shows(lone, FIRST)

    @cached_property
    def repeated_user(self) -> bool:
        """Whether two messages of the user in a row are both shown, or one alone is not shown either."""
        first, second = self._text("user", FIRST), self._text("user", SECOND)
        return self._probe.shows([first, second], FIRST, SECOND) or not self._probe.shows([first], FIRST)

    @cached_property
    def repeated_assistant(self) -> bool:
        """Whether two messages of the assistant in a row are both shown, or one alone is not shown either."""
        user, first, second = self._text("user", USER), self._text("assistant", FIRST), self._text("assistant", SECOND)
        return self._probe.shows([user, first, second, user], FIRST, SECOND) or not self._probe.shows([user, first, user], FIRST)

    # Tools.

    @cached_property
    def tools(self) -> bool:
        """Whether the template shows the tools that it is given."""
        return self._probe.shows([self._text("user", USER)], probe.NAMES[0], tools=TOOLS[:1])

    @cached_property
    def bare_tools(self) -> bool:
        """Whether tools may leave out what is optional: descriptions, types, which arguments are required."""
        bare = {"name": probe.NAMES[0], "parameters": {"type": "object", "properties": {probe.ARGUMENT: {}}}}
        return not self.tools or self._probe.shows(
            [self._text("user", USER)], probe.NAMES[0], tools=[{"type": "function", "function": bare}]
        )

    @cached_property
    def no_parameters(self) -> bool:
        """Whether tools may be without parameters."""
        function = {"name": probe.NAMES[0], "description": probe.DESCRIPTION}
        return not self.tools or all(
            self._probe.shows([self._text("user", USER)], probe.NAMES[0], tools=[{"type": "function", "function": bare}])
            for bare in (function, {**function, "parameters": {}})
        )

    @cached_property
    def tool_calls(self) -> bool:
        """Whether calls in earlier turns are shown, name and arguments."""
        return self._call_form is not None

    @cached_property
    def object_arguments(self) -> bool:
        """Whether a call's arguments go in as an object, not as JSON text."""
        return self._call_form is None or self._call_form[0]

    @cached_property
    def string_arguments(self) -> bool:
        """Whether arguments that are no JSON object can be shown as the text that they are."""
        if not self.tool_calls:
            return True
        broken = probe.call(0, as_object=False)
        broken["function"]["arguments"] = FIRST
        return self._shows(self._turn(broken), FIRST)

    @cached_property
    def empty_content(self) -> str | None:
        """What stands for "no text" beside calls: an empty text, or none where the template asks for that."""
        return "" if self._call_form is None else self._call_form[1]

    @cached_property
    def calls_with_text(self) -> bool:
        """Whether calls are shown when the same turn has text too."""
        return not self.tool_calls or self._shows(self._question_and({**self._calling(self._call(0)), "content": REPLY}), FIRST)

    @cached_property
    def parallel_tool_calls(self) -> bool:
        """Whether all calls of a turn are shown, in their order, and all their results after them."""
        calls = [self._call(0), self._call(1)]
        turn = [self._text("user", USER), self._calling(*calls), self._result(0), self._result(1)]
        return self.tool_calls and self._shows(turn, FIRST, SECOND, *RESULTS)

    @cached_property
    def tool_results(self) -> bool:
        """Whether what a tool gave back is shown."""
        calling = self._calling(self._call(0)) if self.tool_calls else self._text("assistant", REPLY)
        return self._shows([self._text("user", USER), calling, self._result(0)], RESULTS[0])

    @cached_property
    def filler(self) -> str | None:
        """What the assistant has to say between a tool's result and the user's next message; None for nothing."""
        if not self.tool_calls or not self.tool_results:
            return None
        user = self._text("user", USER)
        turn = self._turn(self._call(0))
        if self._shows([*turn, user], USER, RESULTS[0], USER):
            return None
        for text in ("", "..."):
            if self._shows([*turn, self._text("assistant", text), user], USER, RESULTS[0], USER):
                return text
        return None

    @cached_property
    def tool_call_ids(self) -> bool:
        """Whether ids of calls are shown."""
        return self.tool_calls and self._shows(self._turn(self._call(0)), probe.IDS[0])

    @cached_property
    def any_tool_call_id(self) -> bool:
        """Whether ids may have any form; Mistral's want nine letters and digits."""
        if not self.tool_calls:
            return True
        odd = probe.call(0, as_object=self.object_arguments, id="call_probe-000000001")
        return self._shows(self._turn(odd), FIRST)

    @cached_property
    def _call_form(self) -> tuple[bool, str | None] | None:
        """How a call has to be given: arguments as an object or not, and what is there for no content."""
        for content in ("", None):
            for as_object in (True, False):
                call = probe.call(0, as_object=as_object)
                turn = self._question_and({"role": "assistant", "content": content, "tool_calls": [call]})
                # An object that is merely joined to other text comes out as Python writes it.
                if self._shows(turn, FIRST) and not self._shows(turn, f"'{probe.ARGUMENT}': '{FIRST}'"):
                    return as_object, content
        return None

    # Reasoning.

    @cached_property
    def reasoning(self) -> ReasoningName | None:
        """Where the template reads the reasoning of earlier turns, if it does so anywhere."""
        for name in _FIELDS:
            if self._shows_thought({name: THOUGHT}):
                return name
        parts = [{"type": "thinking", "thinking": THOUGHT}, {"type": "text", "text": REPLY}]
        if "thinking" in self._template.constants and self._shows_thought({}, parts):
            return "parts"
        blocks = {"blocks": [{"type": "thoughts", "text": THOUGHT}, {"type": "response", "text": REPLY}]}
        if "blocks" in self._template.constants and self._shows_thought({}, blocks):
            return "blocks"
        if "</think>" in self._template.inspected and self._shows_thought({}, f"<think>\n{THOUGHT}\n</think>\n\n{REPLY}"):
            return "content"
        return None

    @cached_property
    def reasoning_with_text(self) -> bool:
        """Whether a turn with calls may have both reasoning and text."""
        if self.reasoning not in _FIELDS or not self.tool_calls:
            return True
        calling = {**self._calling(self._call(0)), "content": REPLY, self.reasoning: THOUGHT}
        return self._attempt(self._question_and(calling)) is not None

    @cached_property
    def thinking_switch(self) -> str | None:
        """The variable that turns thinking on and off: `enable_thinking`, or what else the family calls it."""
        return None if self._switch is None else self._switch[0]

    def thinking(self, enabled: bool) -> dict[str, Any]:
        """The variables that turn thinking on or off; none where the template has no such switch."""
        if self._switch is None:
            return {}
        name, on, off = self._switch
        return {name: on if enabled else off}

    def effort(self, level: str) -> dict[str, Any]:
        """The variable that says how much to think; the level that the template takes and that is next to `level`.

        A level that nobody knows goes through, so that the refusal is the template's own.
        """
        name = next((name for name in _EFFORTS if name in self._template.variables), _EFFORTS[0])
        if level not in _LEVELS:
            return {name: level}
        user = [self._text("user", USER)]
        wanted = _LEVELS.index(level)
        by_distance = sorted(_LEVELS, key=lambda other: abs(_LEVELS.index(other) - wanted))
        for other in by_distance:
            if self._probe.attempt(user, self.empty_tools, **{name: other}) is not None:
                return {name: other}
        return {name: level}

    @cached_property
    def _switch(self) -> tuple[str, Any, Any] | None:
        user = [self._text("user", USER)]
        for name, on, off in _SWITCHES:
            if name not in self._template.variables or (isinstance(off, str) and off not in self._template.constants):
                continue
            texts = [self._probe.attempt(user, self.empty_tools, **{name: value}) for value in (on, off)]
            if None not in texts and texts[0] != texts[1]:
                return name, on, off
        return None

    def _shows_thought(self, fields: dict[str, Any], content: Any = REPLY) -> bool:
        user = self._text("user", USER)
        turn = [user, {"role": "assistant", "content": content, **fields}]
        calling = {**self._calling(self._call(0)), **fields}
        for kwargs in ({}, self.thinking(True), {"add_generation_prompt": False}):
            if self._shows(turn, THOUGHT, **kwargs) or self._shows([*turn, user], THOUGHT, **kwargs):
                return True
            if fields and self._shows(self._question_and(calling), THOUGHT, **kwargs):
                return True
        return False

    # Ways to write a conversation.

    @property
    def _roles(self) -> list[str]:
        return ["system", "developer"] if self.developer else ["system"]

    def _text(self, role: str, text: str) -> Value:
        return {"role": role, "content": [{"type": "text", "text": text}] if self.wants_parts else text}

    def _call(self, index: int) -> dict[str, Any]:
        return probe.call(index, as_object=self.object_arguments)

    def _calling(self, *calls: dict[str, Any]) -> dict[str, Any]:
        return {"role": "assistant", "content": self.empty_content, "tool_calls": list(calls)}

    def _result(self, index: int) -> dict[str, Any]:
        return {**self._text("tool", RESULTS[index]), "tool_call_id": probe.IDS[index], "name": probe.NAMES[index]}

    def _turn(self, call: dict[str, Any]) -> list[Value]:
        return self._question_and(self._calling(call))

    def _question_and(self, calling: dict[str, Any]) -> list[Value]:
        result = {**self._result(0), "tool_call_id": calling["tool_calls"][0]["id"]}
        return [self._text("user", USER), calling, result]

    def _attempt(self, messages: Sequence[Value], **kwargs: Any) -> str | None:
        return self._probe.attempt(messages, TOOLS if self.tools else self.empty_tools, **kwargs)

    def _shows(self, messages: Sequence[Value], *texts: str, **kwargs: Any) -> bool:
        return self._probe.shows(messages, *texts, tools=TOOLS if self.tools else self.empty_tools, **kwargs)
