"""Bodies of the Messages routes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from puna.api.fields import AnswerFields, Body, Free
from puna.api.numbers import Count, CountOrAll

_CONTENT = {
    "description": "a text, or a list of blocks",
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}],
}


class MessageFields(Body):
    """One turn."""

    role: str
    content: Annotated[Any, WithJsonSchema(_CONTENT)]


class ThinkingFields(Body):
    """Whether and how long the model thinks. A type that is not known counts as `enabled`."""

    type: str
    budget_tokens: Count | None = None
    display: str | None = Field(default=None, description="`omitted`: blocks of thinking come without their text")


class OutputFormat(Body):
    """The form of the answer."""

    type: Literal["json_schema"]
    json_schema: Free = Field(default=None, alias="schema")


class OutputConfig(Body):
    """The form of the answer, and how much is thought about it."""

    effort: str | None = None
    format: OutputFormat | None = None


class CountTokensRequest(Body):
    """A conversation whose prompt is to be counted."""

    model: str | None = None
    messages: list[MessageFields]
    system: Annotated[Any, WithJsonSchema(_CONTENT)] = None
    tools: list[Any] | None = None
    tool_choice: Free = None
    thinking: ThinkingFields | None = None
    output_config: OutputConfig | None = None
    output_format: OutputFormat | None = None
    chat_template_kwargs: dict[str, Any] | None = None


class MessagesRequest(AnswerFields, CountTokensRequest):
    """Answer a conversation."""

    max_tokens: CountOrAll | None = Field(default=None, description="without it an answer may be as long as the server allows")
    stop_sequences: list[str] | None = None
    stream: bool | None = None
