"""Bodies of the OpenAI routes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from puna.api.fields import Body, GenerationFields
from puna.api.messages import ChatFields

_PROMPT = {
    "description": "a text, a list of texts, a list of token ids, or a list of those",
    "anyOf": [{"type": "string"}, {"type": "array"}],
}


class LegacyCompletionRequest(GenerationFields):
    """Continue one or more prompts."""

    prompt: Annotated[Any, WithJsonSchema(_PROMPT)] = None
    echo: bool | None = None
    suffix: str | None = None


class ChatCompletionRequest(GenerationFields, ChatFields):
    """Answer a conversation."""

    parallel_tool_calls: bool | None = None
    parse_tool_calls: bool | None = Field(default=None, description="false: calls stay in `content`, as they were written")


class ControlRequest(Body):
    """Act on an answer while it is made."""

    id: str = Field(min_length=1, description="of the answer")
    action: Literal["reasoning_end"]
    model: str | None = None
