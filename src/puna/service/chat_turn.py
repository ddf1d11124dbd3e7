"""What a dialect asks of one turn of a chat."""

from __future__ import annotations

from typing import Literal

import msgspec

from puna.chat.formats.plan import Choice, Tool
from puna.errors import InvalidRequest
from puna.service.chat import Conversation
from puna.service.params import GenerationParams


class ToolChoice(msgspec.Struct, frozen=True):
    """Which tools may be called, and whether one has to be."""

    mode: Choice = "auto"
    names: tuple[str, ...] | None = None
    """The only tools that may be called; None for all. The model is told of the others too."""

    def among(self, tools: tuple[Tool, ...], *, param: str = "tool_choice") -> tuple[Tool, ...]:
        """The tools that may be called. Raises `InvalidRequest` that names `param` where there is nothing to choose."""
        if self.mode == "none":
            return ()
        known = {tool.name for tool in tools}
        for name in self.names or ():
            if name not in known:
                raise InvalidRequest(f"Field '{param}': there is no tool called {name[:100]!r}", param=param)
        allowed = tuple(tool for tool in tools if self.names is None or tool.name in self.names)
        if self.mode == "required" and not allowed:
            raise InvalidRequest(f"Field '{param}': there are no tools to choose from", param=param)
        return allowed


class ReasoningOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Whether and how long the model thinks, and where that is shown."""

    shown: Literal["apart", "inline", "both"] = "apart"
    """Apart from the answer; as it was written, tags and all, within the answer; or both."""
    enabled: bool | None = None
    """None for what the template does by itself. What opens in spite of False is closed at once."""
    effort: str | None = None
    """The template's business, but for `none`, which disables thinking."""
    budget: int = -1
    """Most tokens of thinking; -1 for no limit."""
    message: str = ""
    """What the model is made to say to itself where the budget ends."""
    controlled: bool = True
    """Whether thinking may be ended from outside while it goes on."""

    @property
    def disabled(self) -> bool:
        """Whether there is to be no thinking."""
        return self.enabled is False or (self.enabled is None and self.effort == "none")


class ChatTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of the assistant. Whoever builds it has checked what needs no template."""

    conversation: Conversation
    """With all the tools there are."""
    choice: ToolChoice = ToolChoice()
    parallel: bool | None = None
    """Whether there may be more than one call; None: unless it is settled which one tool is called."""
    parse_calls: bool = True
    """Whether calls are told from the answer; if not, they are text as the model wrote it."""
    reasoning: ReasoningOptions = ReasoningOptions()
    params: GenerationParams
    """Its constraint is that of the answer itself: thinking and calls are free of it."""
    answer_field: str | None = None
    """The field that a complaint about the constraint should name."""
    tools_field: str = "tools"
    """The field that a complaint about the tools should name."""

    @property
    def several_calls(self) -> bool:
        """Whether there may be more than one call.

        Who names a tool waits for one call of it. A model that is free to begin another, and is weak, may never end.
        """
        settled = self.choice.mode == "required" and self.choice.names is not None and len(self.choice.names) == 1
        return self.parallel if self.parallel is not None else not settled
