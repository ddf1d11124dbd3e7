"""Conversations as chat clients send them."""

from __future__ import annotations

from typing import Annotated, Any, NoReturn

import msgspec
from pydantic import Field, WithJsonSchema

from puna.api.fields import Body, Free
from puna.errors import InvalidRequest, NotSupported
from puna.service.chat import Conversation, Message, TextPart, ToolCall

_CONTENT = {
    "description": "a text, or a list of parts",
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}, {"type": "null"}],
}

_MEDIA = {"image_url": "url", "audio_url": "url", "video_url": "url", "input_audio": "data", "file": "file_data"}
"""Kinds of parts that are not text, and where what they hold is found."""


class MessageFields(Body):
    """One turn."""

    role: str
    content: Annotated[Any, WithJsonSchema(_CONTENT)] = None
    name: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[Any] | None = None
    tool_call_id: str | None = None


class ChatFields(Body):
    """A conversation and what goes into its template."""

    messages: list[MessageFields]
    tools: list[dict[str, Any]] | None = None
    tool_choice: Free = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    reasoning_effort: str | None = None
    chat_template: Free = Field(default=None, description="not accepted from clients")
    template: Free = Field(default=None, description="not accepted from clients")


class ApplyTemplateRequest(ChatFields):
    """Show the prompt of a conversation."""


def decode_conversation(body: ChatFields, *, tools: bool = True) -> Conversation:
    """What the template is given, with or without the tools. Raises `InvalidRequest` or `NotSupported` that names the field."""
    for name in ("chat_template", "template"):
        if getattr(body, name) is not None:
            _refuse(name, "templates are not accepted from clients")
    if body.tool_choice not in (None, "none", "auto") and not body.tools:
        _refuse("tool_choice", "there are no tools to choose from")
    kwargs = dict(body.chat_template_kwargs or {})
    if body.reasoning_effort is not None:
        kwargs.setdefault("reasoning_effort", body.reasoning_effort)
    return Conversation(
        messages=tuple(_message(message, f"messages.{index}") for index, message in enumerate(body.messages)),
        tools=tuple(body.tools or ()) if tools else (),
        add_generation_prompt=body.add_generation_prompt,
        continue_final_message=body.continue_final_message,
        kwargs=kwargs,
    )


def _message(fields: MessageFields, at: str) -> Message:
    return Message(
        role=fields.role,
        content=_content(fields.content, f"{at}.content"),
        name=fields.name,
        reasoning_content=fields.reasoning_content,
        tool_calls=tuple(_call(call, f"{at}.tool_calls.{i}") for i, call in enumerate(fields.tool_calls or ())),
        tool_call_id=fields.tool_call_id,
    )


def _content(content: Any, at: str) -> str | tuple[TextPart, ...] | None:
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list):
        return tuple(_part(part, f"{at}.{index}") for index, part in enumerate(content))
    return _refuse(at, "a text or a list of parts is expected")


def _part(part: Any, at: str) -> TextPart:
    if isinstance(part, str):
        return TextPart(part)
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text":
        text = part.get("text")
        return TextPart(text) if isinstance(text, str) else _refuse(f"{at}.text", "a text is expected")
    if isinstance(kind, str) and kind in _MEDIA:
        _refuse_media(part, kind, at)
    return _refuse(f"{at}.type", "a part of type 'text' is expected")


def _refuse_media(part: dict[str, Any], kind: str, at: str) -> NoReturn:
    holder = part.get(kind)
    source = holder.get(_MEDIA[kind]) if isinstance(holder, dict) else holder
    if not isinstance(source, str):
        _refuse(f"{at}.{kind}", "has nothing in it")
    if _MEDIA[kind] == "url" and not source.startswith("data:"):
        _refuse(f"{at}.{kind}", "only data: URLs are accepted")
    raise NotSupported(f"Field '{at}': this model reads text only", param=at)


def _call(call: Any, at: str) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return _refuse(f"{at}.function.name", "a text is expected")
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode({} if arguments is None else arguments).decode()
    id = call.get("id")
    return ToolCall(id=id if isinstance(id, str) else "", name=function["name"], arguments=arguments or "{}")


def _refuse(field: str, reason: str) -> NoReturn:
    raise InvalidRequest(f"Field '{field}': {reason}", param=field)
