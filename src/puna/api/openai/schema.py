"""Bodies of the OpenAI routes."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from puna.api.fields import Free, GenerationFields
from puna.api.messages import ChatFields
from puna.api.numbers import Whole

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

    functions: list[Any] | None = None
    function_call: Free = None
    parallel_tool_calls: bool | None = None
    parse_tool_calls: bool | None = None
    reasoning_format: str | None = None
    reasoning_budget_tokens: Annotated[Whole, Field(ge=-1)] | None = None
