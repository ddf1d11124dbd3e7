"""Input items made into neutral messages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn

import msgspec

from puna.api.media import decode_media, is_media
from puna.errors import InvalidRequest
from puna.log import logger
from puna.service.chat import MediaPart, Message, Part, ToolCall, content_of

_ROLES = ("user", "assistant", "system", "developer")
_TEXTS = {"input_text": "text", "output_text": "text", "text": "text", "summary_text": "text", "refusal": "refusal"}
_FOREIGN = (
    *("web_search_call", "file_search_call", "computer_call", "computer_call_output", "image_generation_call"),
    *("code_interpreter_call", "local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output"),
    *("mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "mcp_call", "tool_search_call"),
    *("tool_search_output", "apply_patch_call", "apply_patch_call_output", "compaction", "item_reference_list"),
)
"""Items about tools that others run. Nothing is lost for the model, which never saw those tools."""


def decode_input(value: Any) -> tuple[Message, ...]:
    """The conversation of `input`. Raises `InvalidRequest` that names the field."""
    if isinstance(value, str):
        return (Message(role="user", content=value),)
    if not isinstance(value, list):
        _refuse("input", "a text or a list of items is expected")
    turns = _Turns()
    for index, item in enumerate(value):
        at = f"input.{index}"
        if isinstance(item, str):
            turns.add(Message(role="user", content=item))
        elif isinstance(item, dict):
            _item(turns, item, at)
        else:
            _refuse(at, "an item is expected, which is an object")
    return turns.messages()


@dataclass(slots=True)
class _Turns:
    """What the assistant thought, said and called is one message, though it comes as several items."""

    done: list[Message] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    pieces: list[str | MediaPart] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    open: bool = False

    def add(self, message: Message) -> None:
        self.close()
        self.done.append(message)

    def think(self, text: str) -> None:
        if self.pieces or self.calls:
            self.close()
        if text:
            self.thoughts.append(text)
        self.open = True

    def say(self, pieces: list[str | MediaPart]) -> None:
        if self.calls:
            self.close()
        self.pieces += pieces
        self.open = True

    def call(self, call: ToolCall) -> None:
        self.calls.append(call)
        self.open = True

    def close(self) -> None:
        if not self.open:
            return
        self.done.append(
            Message(
                role="assistant",
                content=content_of(self.pieces),
                reasoning_content="\n".join(self.thoughts) or None,
                tool_calls=tuple(self.calls),
            )
        )
        self.thoughts, self.pieces, self.calls, self.open = [], [], [], False

    def messages(self) -> tuple[Message, ...]:
        # Thoughts that nothing came of are no turn: the model thinks afresh.
        if self.pieces or self.calls:
            self.close()
        return tuple(self.done)


def _item(turns: _Turns, item: dict[str, Any], at: str) -> None:
    kind = item.get("type", "message" if "role" in item else None)
    if kind == "message":
        _message(turns, item, at)
    elif kind == "reasoning":
        turns.think(_thoughts(item, at))
    elif kind in ("function_call", "custom_tool_call"):
        turns.call(_call(item, at, custom=kind == "custom_tool_call"))
    elif kind in ("function_call_output", "custom_tool_call_output"):
        turns.add(
            Message(role="tool", tool_call_id=_text(item, "call_id", at), content=_output(item.get("output"), f"{at}.output"))
        )
    elif kind == "item_reference":
        _refuse(f"{at}.type", "references to items are not kept here; send the item, or 'previous_response_id'")
    elif kind in _FOREIGN:
        logger.warning("an input item of type %r is left out: it is about a tool that nobody here runs", kind)
    else:
        _refuse(f"{at}.type", f"{str(kind)[:60]!r} is no type of item that can be read")


def _message(turns: _Turns, item: dict[str, Any], at: str) -> None:
    role = item.get("role")
    if role not in _ROLES:
        _refuse(f"{at}.role", f"one of {', '.join(_ROLES)} is expected")
    content = item.get("content")
    if isinstance(content, str):
        pieces: list[str | MediaPart] = [content]
    elif isinstance(content, list):
        pieces = [_part(part, f"{at}.content.{index}") for index, part in enumerate(content)]
    else:
        _refuse(f"{at}.content", "a text or a list of parts is expected")
    if role == "assistant":
        turns.say(pieces)
    else:
        turns.add(Message(role=role, content=content_of(pieces)))


def _part(part: Any, at: str) -> str | MediaPart:
    if isinstance(part, str):
        return part
    kind = part.get("type") if isinstance(part, dict) else None
    if is_media(kind):
        return decode_media(part, at)
    if kind not in _TEXTS:
        _refuse(f"{at}.type", f"a part of type {str(kind)[:60]!r} cannot be read")
    return _text(part, _TEXTS[kind], at)


def _thoughts(item: dict[str, Any], at: str) -> str:
    """The thoughts themselves, or where there are none their summary. Clients leave out either, or send null."""
    for name in ("content", "summary"):
        parts = item.get(name)
        if parts is None:
            continue
        if not isinstance(parts, list):
            _refuse(f"{at}.{name}", "a list of parts is expected")
        texts = [part.get("text") for part in parts if isinstance(part, dict)]
        if found := [text for text in texts if isinstance(text, str) and text]:
            return "\n".join(found)
    return ""


def _call(item: dict[str, Any], at: str, *, custom: bool) -> ToolCall:
    if custom:
        arguments = msgspec.json.encode({"input": _text(item, "input", at)}).decode()
    else:
        arguments = _text(item, "arguments", at) or "{}"
    return ToolCall(id=_text(item, "call_id", at), name=_text(item, "name", at), arguments=arguments)


def _output(value: Any, at: str) -> str | tuple[Part, ...]:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return content_of([_part(part, f"{at}.{index}") for index, part in enumerate(value)])
    return _refuse(at, "a text or a list of parts is expected")


def _text(item: dict[str, Any], name: str, at: str) -> str:
    value = item.get(name)
    return value if isinstance(value, str) else _refuse(f"{at}.{name}", "a text is expected")


def _refuse(field: str, reason: str) -> NoReturn:
    raise InvalidRequest(f"Field '{field}': {reason}", param=field)
