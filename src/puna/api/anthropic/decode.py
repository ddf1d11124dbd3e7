"""Messages requests made into a chat turn."""

from __future__ import annotations

from typing import Any, NoReturn

from puna.api.anthropic.content import decode_messages
from puna.api.anthropic.schema import CountTokensRequest, MessagesRequest
from puna.api.constraints import with_form
from puna.api.decode import decode_generation
from puna.api.fields import AnswerFields, GenerationFields, JsonSchemaFormat, ResponseFormat
from puna.api.logprobs import Logprobs
from puna.api.tools import decode_tools
from puna.config import ServerSettings
from puna.errors import InvalidRequest
from puna.log import logger
from puna.service.chat import Conversation, Tool
from puna.service.chat_turn import ChatTurn, ReasoningOptions, ToolChoice
from puna.service.params import GenerationParams
from puna.service.service import Service

_PASSED_ON = {name: field.alias or name for name, field in AnswerFields.model_fields.items()}
"""Fields that mean here what they mean elsewhere, with their names in requests."""

FORMAT = "output_config.format"


def decode_turn(service: Service, body: MessagesRequest) -> ChatTurn:
    """The turn that answers. Raises `InvalidRequest` or `NotSupported` that names the field."""
    for name in ("n_probs", "logprobs", "top_logprobs"):
        if getattr(body, name):
            _refuse(name, "probabilities have no place in a reply of this route")
    values: dict[str, Any] = {key: value for name, key in _PASSED_ON.items() if (value := getattr(body, name)) is not None}
    form = _output_format(body)
    with_form(values, form, FORMAT)
    generation = GenerationFields.model_construct(**values)
    decoded = decode_generation(generation, service, logprobs=Logprobs(), bias_texts=False)
    return _turn(service.settings, body, decoded.params, answer_field=FORMAT if form is not None else decoded.constraint_field)


def decode_prompt(service: Service, body: CountTokensRequest) -> ChatTurn:
    """A turn that is only to be counted."""
    return _turn(service.settings, body, GenerationParams(), answer_field=None)


def _turn(settings: ServerSettings, body: CountTokensRequest, params: GenerationParams, *, answer_field: str | None) -> ChatTurn:
    choice, parallel = _choice(body.tool_choice)
    return ChatTurn(
        conversation=Conversation(
            messages=decode_messages(body), tools=_tools(body.tools), kwargs=body.chat_template_kwargs or {}
        ),
        choice=choice,
        parallel=parallel,
        reasoning=_reasoning(body, settings),
        params=params,
        answer_field=answer_field,
    )


def _tools(tools: list[Any] | None) -> tuple[Tool, ...]:
    """The tools that a client runs. Those that Anthropic's servers would run are left out, with a word in the log."""
    functions: list[Any] = []
    for index, item in enumerate(tools or ()):
        if not isinstance(item, dict):
            _refuse(f"tools.{index}", "an object is expected")
        kind = item.get("type")
        if kind == "function":
            _refuse(f"tools.{index}.type", "this is a tool in OpenAI's shape; here it has a 'name' and an 'input_schema'")
        if "input_schema" not in item and kind not in (None, "custom"):
            logger.warning("tool %r of type %r is left out: nobody here can run it", str(item.get("name"))[:80], str(kind)[:80])
            continue
        schema = item.get("input_schema")
        if not isinstance(schema, dict):
            _refuse(f"tools.{index}.input_schema", "a JSON schema is expected, which is an object")
        functions.append({**{key: item.get(key) for key in ("name", "description", "strict")}, "parameters": schema})
    try:
        return decode_tools(functions, None)
    except InvalidRequest as error:
        raise InvalidRequest(error.message.replace(".parameters", ".input_schema"), param=error.param) from error


def _choice(value: Any) -> tuple[ToolChoice, bool | None]:
    """Which tools may be called, and whether several at once, if that is said."""
    if value is None:
        return ToolChoice(), None
    kind = value.get("type") if isinstance(value, dict) else None
    if kind not in ("auto", "any", "tool", "none"):
        _refuse("tool_choice.type", "'auto', 'any', 'tool' or 'none' is expected")
    disabled = value.get("disable_parallel_tool_use")
    parallel = None if disabled is None else disabled is not True
    if kind == "tool":
        name = value.get("name")
        if not isinstance(name, str):
            _refuse("tool_choice.name", "a text is expected")
        return ToolChoice("required", (name,)), parallel
    return (ToolChoice("required") if kind == "any" else ToolChoice("none" if kind == "none" else "auto")), parallel


def _reasoning(body: CountTokensRequest, settings: ServerSettings) -> ReasoningOptions:
    thinking = body.thinking
    effort = body.output_config.effort if body.output_config is not None else None
    enabled = settings.reasoning if thinking is None else thinking.type != "disabled"
    budget = settings.reasoning_budget
    if thinking is not None and thinking.type == "adaptive":
        enabled = settings.reasoning  # the model's own decision
    if thinking is not None and thinking.budget_tokens is not None:
        budget = thinking.budget_tokens
    return ReasoningOptions(
        enabled=enabled,
        effort=effort or settings.reasoning_effort or None,
        budget=budget,
        message=settings.reasoning_budget_message,
    )


def _output_format(body: CountTokensRequest) -> ResponseFormat | None:
    given = body.output_config.format if body.output_config is not None else None
    form = given or body.output_format
    if form is None:
        return None
    schema = JsonSchemaFormat.model_validate({"schema": form.json_schema})
    return ResponseFormat.model_construct(type="json_schema", json_schema=schema, strict=None, json_object_schema=None)


def _refuse(field: str, reason: str) -> NoReturn:
    raise InvalidRequest(f"Field '{field}': {reason}", param=field)
