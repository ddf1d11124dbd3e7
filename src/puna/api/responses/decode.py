"""Responses requests made into a chat turn."""

from __future__ import annotations

from typing import Any, NoReturn

from puna.api.constraints import with_form
from puna.api.decode import decode_generation
from puna.api.fields import AnswerFields, GenerationFields, JsonSchemaFormat, ResponseFormat
from puna.api.logprobs import Logprobs
from puna.api.responses.items import decode_input
from puna.api.responses.schema import InputTokensRequest, ResponsesRequest
from puna.api.responses.store import ResponseStore
from puna.api.tools import decode_choice, decode_tools
from puna.config import ServerSettings
from puna.errors import InvalidRequest, NotFound
from puna.log import logger
from puna.service.chat import Conversation, Message, Tool
from puna.service.chat_turn import ChatTurn, ReasoningOptions, ToolChoice
from puna.service.params import GenerationParams
from puna.service.service import Service

_PASSED_ON = {name: field.alias or name for name, field in AnswerFields.model_fields.items()}
"""Fields that mean here what they mean elsewhere, with their names in requests."""

FORMAT = "text.format"


def decode_turn(service: Service, body: ResponsesRequest, messages: tuple[Message, ...]) -> ChatTurn:
    """The turn that answers `messages`. Raises `InvalidRequest` or `NotSupported` that names the field."""
    for name in ("n_probs", "logprobs", "top_logprobs"):
        if getattr(body, name):
            _refuse(name, "probabilities are not given by this route; /v1/chat/completions has them")
    if "message.output_text.logprobs" in (body.include or ()):
        _refuse("include", "probabilities are not given by this route; /v1/chat/completions has them")
    for name in ("background", "prompt"):
        if getattr(body, name):
            _refuse(name, "is not supported")
    values: dict[str, Any] = {key: value for name, key in _PASSED_ON.items() if (value := getattr(body, name)) is not None}
    if body.max_output_tokens is not None:
        values["n_predict"] = body.max_output_tokens
    form = _format(body)
    with_form(values, form, FORMAT)
    decoded = decode_generation(GenerationFields.model_construct(**values), service, logprobs=Logprobs(), bias_texts=False)
    return _turn(
        service.settings, body, messages, decoded.params, answer_field=FORMAT if form is not None else decoded.constraint_field
    )


def decode_prompt(service: Service, body: InputTokensRequest, messages: tuple[Message, ...]) -> ChatTurn:
    """A turn that is only to be counted."""
    return _turn(service.settings, body, messages, GenerationParams(), answer_field=None)


def decode_messages(body: InputTokensRequest, store: ResponseStore) -> tuple[Message, ...]:
    """What was said before, and what is said now; without the instructions. Raises `NotFound` for a reply that is not kept."""
    if body.conversation is not None:
        _refuse("conversation", "is not supported; use 'previous_response_id'")
    if body.truncation == "auto":
        _refuse("truncation", "only 'disabled' is supported")
    earlier: tuple[Message, ...] = ()
    if body.previous_response_id is not None:
        kept = store.get(body.previous_response_id)
        if kept is None:
            raise NotFound(
                f"Previous response with id {body.previous_response_id[:100]!r} not found", param="previous_response_id"
            )
        earlier = kept.messages
    if body.input is None and not earlier:
        _refuse("input", "Field required")
    return (*earlier, *(decode_input(body.input) if body.input is not None else ()))


def _turn(
    settings: ServerSettings,
    body: InputTokensRequest,
    messages: tuple[Message, ...],
    params: GenerationParams,
    *,
    answer_field: str | None,
) -> ChatTurn:
    tools = _tools(body.tools)
    if body.instructions:
        messages = (Message(role="developer", content=body.instructions), *messages)
    return ChatTurn(
        conversation=Conversation(
            messages=messages, tools=tools, add_generation_prompt=True, kwargs=body.chat_template_kwargs or {}
        ),
        choice=_choice(body.tool_choice),
        parallel=body.parallel_tool_calls,
        reasoning=_reasoning(body, settings),
        params=params,
        answer_field=answer_field,
    )


def _tools(tools: list[Any] | None) -> tuple[Tool, ...]:
    """The functions among the tools. Others, which would run elsewhere, are left out, with a word in the log."""
    functions: list[Any] = []
    for index, item in enumerate(tools or ()):
        if not isinstance(item, dict):
            _refuse(f"tools.{index}", "an object is expected")
        kind = item.get("type")
        if kind == "function":
            functions.append(item)
        else:
            logger.warning("tool %r of type %r is left out: nobody here can run it", str(item.get("name"))[:80], str(kind)[:80])
    return decode_tools(functions, None)


def _choice(value: Any) -> ToolChoice:
    if isinstance(value, dict) and value.get("type") not in ("function", "allowed_tools"):
        return _refuse("tool_choice.type", "'function' or 'allowed_tools' is expected")
    if isinstance(value, dict) and value.get("type") == "allowed_tools":
        tools = value.get("tools")
        if isinstance(tools, list):
            known = [tool for tool in tools if not isinstance(tool, dict) or tool.get("type", "function") == "function"]
            value = {**value, "tools": known}
    return decode_choice(value)


def _reasoning(body: InputTokensRequest, settings: ServerSettings) -> ReasoningOptions:
    effort = body.reasoning.effort if body.reasoning is not None else None
    return ReasoningOptions(
        enabled=settings.reasoning if effort is None else None,
        effort=effort or settings.reasoning_effort or None,
        budget=settings.reasoning_budget,
        message=settings.reasoning_budget_message,
    )


def _format(body: InputTokensRequest) -> ResponseFormat | None:
    form = body.text.format if body.text is not None else None
    if form is None or form.type == "text":
        return None
    schema = None
    if form.type == "json_schema":
        schema = JsonSchemaFormat.model_validate({"name": form.name, "strict": form.strict, "schema": form.json_schema})
    return ResponseFormat.model_construct(type=form.type, json_schema=schema, strict=None, json_object_schema=None)


def _refuse(field: str, reason: str) -> NoReturn:
    raise InvalidRequest(f"Field '{field}': {reason}", param=field)
