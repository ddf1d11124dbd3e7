"""Bodies of the Responses routes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, WithJsonSchema

from puna.api.fields import AnswerFields, Body, Free
from puna.api.numbers import Count, CountOrAll

_INPUT = {
    "description": "a text, or a list of items",
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}],
}


class ReasoningOption(Body):
    """How much the model thinks. `summary` is for models whose thoughts are secret; here they are shown as they are."""

    effort: str | None = None
    summary: str | None = None


class TextFormat(Body):
    """The form of the answer."""

    model_config = ConfigDict(strict=True, extra="ignore", populate_by_name=True)

    type: Literal["text", "json_object", "json_schema"]
    name: str | None = None
    strict: bool | None = None
    json_schema: Free = Field(default=None, alias="schema")


class TextOption(Body):
    """How the answer is written."""

    format: TextFormat | None = None
    verbosity: str | None = None


class InputTokensRequest(Body):
    """A conversation whose prompt is to be counted."""

    model: str | None = None
    input: Annotated[Any, WithJsonSchema(_INPUT)] = None
    instructions: str | None = None
    tools: list[Any] | None = None
    tool_choice: Free = None
    parallel_tool_calls: bool | None = None
    previous_response_id: str | None = None
    reasoning: ReasoningOption | None = None
    text: TextOption | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    conversation: Free = Field(default=None, description="not supported; use `previous_response_id`")
    truncation: Literal["disabled", "auto"] | None = Field(default=None, description="only `disabled` is supported")


class ResponsesRequest(AnswerFields, InputTokensRequest):
    """Answer a conversation."""

    max_output_tokens: CountOrAll | None = None
    max_tool_calls: Count | None = Field(default=None, description="counts calls of tools that run here, of which there are none")
    stream: bool | None = None
    store: bool | None = None
    include: list[str] | None = None
    metadata: dict[str, str] | None = None
    user: str | None = None
    background: bool | None = None
    prompt: Free = Field(default=None, description="templates of prompts are not kept here")
