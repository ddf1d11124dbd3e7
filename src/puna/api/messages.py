"""Conversations as chat clients send them."""

from __future__ import annotations

from typing import Annotated, Any, NoReturn

import msgspec
from pydantic import Field, WithJsonSchema

from puna.api.fields import Body, Free
from puna.api.media import decode_media, is_media
from puna.api.reasoning import ReasoningFields
from puna.api.tools import decode_choice, decode_tools
from puna.errors import InvalidRequest
from puna.service.chat import Conversation, Message, Part, TextPart, ToolCall
from puna.service.chat_turn import ToolChoice

_CONTENT = {
    "description": "a text, or a list of parts",
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}, {"type": "null"}],
}

_SPEAKERS = frozenset(["system", "developer", "user"])
"""Roles that have nothing but their content. Some clients send `null` for nothing; one without the field misspelt it."""


class MessageFields(Body):
    """One turn."""

    role: str
    content: Annotated[Any, WithJsonSchema(_CONTENT)] = None
    name: str | None = None
    reasoning_content: str | None = None
    reasoning: Free = Field(default=None, description="the same as `reasoning_content`, if it is a text")
    tool_calls: list[Any] | None = None
    function_call: Free = None
    tool_call_id: str | None = None


class ChatFields(ReasoningFields):
    """A conversation and what goes into its template."""

    messages: list[MessageFields]
    tools: list[Any] | None = None
    tool_choice: Free = None
    functions: list[Any] | None = None
    function_call: Free = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    chat_template: str | None = Field(default=None, description="name of a template, or Jinja text if the server allows that")
    template: str | None = Field(default=None, description="the same as `chat_template`")


class ApplyTemplateRequest(ChatFields):
    """Show the prompt of a conversation."""


def decode_tool_choice(body: ChatFields) -> ToolChoice:
    """Which tools may be called, and whether one has to be. Raises `InvalidRequest` that names the field."""
    return decode_choice(body.tool_choice, body.function_call, legacy=bool(body.functions))


def decode_conversation(body: ChatFields) -> Conversation:
    """What the template is given, with all the tools. Raises `InvalidRequest` that names the field."""
    if body.template is not None and body.chat_template not in (None, body.template):
        _refuse("template", "is another one than 'chat_template'")
    return Conversation(
        messages=tuple(_message(message, f"messages.{index}") for index, message in enumerate(body.messages)),
        tools=decode_tools(body.tools, body.functions),
        add_generation_prompt=body.add_generation_prompt,
        continue_final_message=body.continue_final_message,
        kwargs=body.chat_template_kwargs or {},
        template=body.template if body.chat_template is None else body.chat_template,
        template_field="template" if body.chat_template is None else "chat_template",
    )


def _message(fields: MessageFields, at: str) -> Message:
    if fields.role in _SPEAKERS and "content" not in fields.model_fields_set:
        _refuse(f"{at}.content", "Field required")
    return Message(
        role=fields.role,
        content=_content(fields.content, f"{at}.content"),
        name=fields.name,
        reasoning_content=_reasoning(fields),
        tool_calls=_calls(fields, at),
        tool_call_id=fields.tool_call_id,
    )


def _reasoning(fields: MessageFields) -> str | None:
    if fields.reasoning_content is None and isinstance(fields.reasoning, str):
        return fields.reasoning
    return fields.reasoning_content


def _calls(fields: MessageFields, at: str) -> tuple[ToolCall, ...]:
    if fields.tool_calls is None and fields.function_call is not None:  # OpenAI's older form
        return (_call({"function": fields.function_call}, f"{at}.function_call", at_function=f"{at}.function_call"),)
    return tuple(_call(call, f"{at}.tool_calls.{i}") for i, call in enumerate(fields.tool_calls or ()))


def _content(content: Any, at: str) -> str | tuple[Part, ...] | None:
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list):
        return tuple(_part(part, f"{at}.{index}") for index, part in enumerate(content))
    return _refuse(at, "a text or a list of parts is expected")


def _part(part: Any, at: str) -> Part:
    if isinstance(part, str):
        return TextPart(part)
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in ("text", "refusal"):
        text = part.get(kind)
        return TextPart(text) if isinstance(text, str) else _refuse(f"{at}.{kind}", "a text is expected")
    if is_media(kind):
        return decode_media(part, at)
    return _refuse(f"{at}.type", "a part of type 'text', 'image_url' or 'input_audio' is expected")


def _call(call: Any, at: str, *, at_function: str = "") -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return _refuse(f"{at_function or f'{at}.function'}.name", "a text is expected")
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode({} if arguments is None else arguments).decode()
    id = call.get("id")
    return ToolCall(id=id if isinstance(id, str) else "", name=function["name"], arguments=arguments or "{}")


def _refuse(field: str, reason: str) -> NoReturn:
    raise InvalidRequest(f"Field '{field}': {reason}", param=field)
