"""What a template can take, found out by rendering small conversations with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from puna.errors import InvalidRequest

if TYPE_CHECKING:
    from puna.chat.template import ChatTemplate

_FIRST = "PROBE-ONE"
_SECOND = "PROBE-TWO"
_USER = "PROBE-USER"
_REPLY = "PROBE-REPLY"

Value = Mapping[str, Any]


class Capabilities:
    """Answers about one template, each found when first asked for. A refusal by the template is an answer, not an error."""

    def __init__(self, template: ChatTemplate) -> None:
        self._template = template

    @cached_property
    def empty_tools(self) -> list[Value] | None:
        """What stands for "no tools": none, or an empty list where the template walks over the tools without asking."""
        if (
            self._attempt([self._text("user", _USER)], None) is None
            and self._attempt([self._text("user", _USER)], []) is not None
        ):
            return []
        return None

    @cached_property
    def wants_parts(self) -> bool:
        """Whether content has to be a list of parts, because the template cannot take a string."""
        return not self._shows([{"role": "user", "content": _USER}], _USER) and self._shows(
            [{"role": "user", "content": [{"type": "text", "text": _USER}]}], _USER
        )

    @cached_property
    def system(self) -> bool:
        """Whether a system message that comes first is taken and shown."""
        return self._shows([self._text("system", _FIRST), self._text("user", _USER)], _FIRST, _USER)

    @cached_property
    def developer(self) -> bool:
        """Whether the template itself knows the developer role; printing any role it is given is not knowing it."""
        return "developer" in self._template.constants and self._shows(
            [self._text("developer", _FIRST), self._text("user", _USER)], _FIRST, _USER
        )

    @cached_property
    def several_system(self) -> bool:
        """Whether two system messages at the start are both shown, in their order."""
        user = self._text("user", _USER)
        return all(
            self._shows([self._text(role, _FIRST), self._text(role, _SECOND), user], _FIRST, _SECOND) for role in self._roles
        )

    @cached_property
    def late_system(self) -> bool:
        """Whether system messages after the first turn are shown, be it before a reply or before the next question."""
        user, reply = self._text("user", _USER), self._text("assistant", _REPLY)
        return all(
            self._shows([user, system], _USER, _FIRST) and self._shows([user, reply, system, user], _REPLY, _FIRST)
            for system in (self._text(role, _FIRST) for role in self._roles)
        )

    @cached_property
    def drops_lone_system(self) -> bool:
        """Whether a conversation of a system message alone is taken, but not shown."""
        lone = [self._text("system", _FIRST)]
        return self._attempt(lone, self.empty_tools) is not None and not self._shows(lone, _FIRST)

    @property
    def _roles(self) -> list[str]:
        return ["system", "developer"] if self.developer else ["system"]

    def _text(self, role: str, text: str) -> Value:
        return {"role": role, "content": [{"type": "text", "text": text}] if self.wants_parts else text}

    def _shows(self, messages: Sequence[Value], *texts: str) -> bool:
        rendered = self._attempt(messages, None) or self._attempt(messages, [])
        if rendered is None:
            return False
        places = [rendered.find(text) for text in texts]
        return -1 not in places and places == sorted(places)

    def _attempt(self, messages: Sequence[Value], tools: Sequence[Value] | None) -> str | None:
        try:
            return self._template.render(messages, tools)
        except InvalidRequest:
            return None
