"""Small conversations that find out what a template can take."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from puna.errors import InvalidRequest

if TYPE_CHECKING:
    from puna.chat.template import ChatTemplate

Value = Mapping[str, Any]

FIRST = "PROBE-ONE"
SECOND = "PROBE-TWO"
USER = "PROBE-USER"
REPLY = "PROBE-REPLY"
THOUGHT = "PROBE-THOUGHT"
DESCRIPTION = "PROBE-DESCRIPTION"
RESULTS = ("PROBE-RESULT-ONE", "PROBE-RESULT-TWO")
ARGUMENT = "probe_argument"
NAMES = ("probe_tool_one", "probe_tool_two")
IDS = ("probe0001", "probe0002")
"""Nine letters and digits: the one form that no template refuses."""


def tool(name: str = NAMES[0]) -> dict[str, Any]:
    """A tool with one argument."""
    properties = {ARGUMENT: {"type": "string", "description": DESCRIPTION}}
    parameters = {"type": "object", "properties": properties, "required": [ARGUMENT]}
    return {"type": "function", "function": {"name": name, "description": DESCRIPTION, "parameters": parameters}}


TOOLS = (tool(), tool(NAMES[1]))


def call(index: int, *, as_object: bool, id: str | None = None) -> dict[str, Any]:
    """The call of a tool, its one argument's value a text of its own."""
    value = (FIRST, SECOND)[index]
    arguments: Any = {ARGUMENT: value} if as_object else f'{{"{ARGUMENT}": "{value}"}}'
    id = IDS[index] if id is None else id
    return {"id": id, "type": "function", "function": {"name": NAMES[index], "arguments": arguments}}


SECONDS = 3.0
"""Processor time that all attempts with one template may take; real ones take a tenth of one."""


class Prober:
    """Renders conversations with one template and looks for their texts. A refusal is an answer, not an error."""

    def __init__(self, template: ChatTemplate) -> None:
        self._template = template
        self._left = SECONDS

    def attempt(self, messages: Sequence[Value], tools: Sequence[Value] | None = None, **kwargs: Any) -> str | None:
        """The rendered text; None when the template refuses, or has used up its time."""
        if self._left <= 0:
            return None
        began = time.thread_time()
        try:
            return self._template.render(messages, tools, **kwargs)
        except InvalidRequest:
            return None
        finally:
            self._left -= time.thread_time() - began

    def shows(self, messages: Sequence[Value], *texts: str, tools: Sequence[Value] | None = None, **kwargs: Any) -> bool:
        """Whether all of the texts are there, in that order."""
        rendered = self.attempt(messages, tools, **kwargs)
        if rendered is None and not tools:
            rendered = self.attempt(messages, [], **kwargs)
        if rendered is None:
            return False
        place = 0
        for text in texts:
            place = rendered.find(text, place)
            if place < 0:
                return False
            place += len(text)
        return True
