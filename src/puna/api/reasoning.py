"""How requests say whether and how long the model thinks."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from puna.api.fields import Body
from puna.api.numbers import Whole
from puna.config import ServerSettings
from puna.errors import InvalidRequest
from puna.service.chat_turn import ReasoningOptions

Budget = Annotated[Whole, Field(ge=-1, le=2**31 - 1)]

_SHOWN: dict[str, Literal["apart", "inline", "both"]] = {
    "auto": "apart",
    "deepseek": "apart",
    "none": "inline",
    "deepseek-legacy": "both",
}


class ReasoningFields(Body):
    """Thinking: what the template is told, where it is shown, when it ends."""

    reasoning_format: Literal["auto", "none", "deepseek", "deepseek-legacy"] | None = None
    reasoning_effort: str | None = Field(default=None, description="`none` disables reasoning")
    enable_thinking: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    reasoning_budget_tokens: Budget | None = Field(default=None, description="most tokens of reasoning; -1 for no limit")
    reasoning_budget: Budget | None = Field(default=None, description="the same as `reasoning_budget_tokens`")
    thinking_budget_tokens: Budget | None = Field(default=None, description="the same as `reasoning_budget_tokens`")
    reasoning_budget_message: Annotated[str, Field(max_length=4096)] | None = None
    reasoning_control: bool | None = Field(default=None, description="false: reasoning cannot be ended from outside")


def decode_reasoning(fields: ReasoningFields, settings: ServerSettings) -> ReasoningOptions:
    """Neutral values; what is not said is what the server was started with. Raises `InvalidRequest` that names the field."""
    budgets = (fields.reasoning_budget_tokens, fields.reasoning_budget, fields.thinking_budget_tokens)
    named = fields.enable_thinking
    if (given := (fields.chat_template_kwargs or {}).get("enable_thinking")) is not None:
        if not isinstance(given, bool):
            field = "chat_template_kwargs.enable_thinking"
            raise InvalidRequest(f"Field '{field}': true or false is expected", param=field)
        named = given
    effort = fields.reasoning_effort or settings.reasoning_effort or None
    if named is None and fields.reasoning_effort is None:
        named = settings.reasoning
    message = fields.reasoning_budget_message
    return ReasoningOptions(
        shown=_SHOWN[fields.reasoning_format or settings.reasoning_format],
        enabled=named,
        effort=effort,
        budget=next((budget for budget in budgets if budget is not None), settings.reasoning_budget),
        message=settings.reasoning_budget_message if message is None else message,
        controlled=fields.reasoning_control is not False,
    )
