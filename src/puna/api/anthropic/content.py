"""Blocks of a conversation made into neutral messages."""

from __future__ import annotations

from typing import Any, NoReturn

import msgspec

from puna.api.anthropic.schema import CountTokensRequest
from puna.errors import InvalidRequest, NotSupported
from puna.service.chat import MediaPart, Message, ToolCall, content_of

BILLING = "x-anthropic-billing-header:"
"""How a line of the system prompt begins that some clients change with every request. It says nothing to a model, and would
keep every prompt from being found in the cache."""

_ROLES = ("user", "assistant", "system")

_UNSEEN = frozenset(["redacted_thinking"])
"""Blocks of the assistant that no other model can read."""


def decode_messages(body: CountTokensRequest) -> tuple[Message, ...]:
    """All turns, the system prompt first. Raises `InvalidRequest` or `NotSupported` that names the field."""
    found: list[Message] = []
    system = _system(body.system)
    if system is not None:
        found.append(system)
    for index, fields in enumerate(body.messages):
        at = f"messages.{index}"
        if fields.role not in _ROLES:
            _refuse(f"{at}.role", f"one of {', '.join(_ROLES)} is expected")
        blocks = _blocks(fields.content, f"{at}.content")
        found += (
            _assistant(blocks, f"{at}.content") if fields.role == "assistant" else _other(fields.role, blocks, f"{at}.content")
        )
    return tuple(found)


def _system(value: Any) -> Message | None:
    if value is None:
        return None
    texts = []
    for index, block in enumerate(_blocks(value, "system")):
        text = _text(block, f"system.{index}")
        if text.startswith(BILLING):
            text = text.partition("\n")[2]
        if text:
            texts.append(text)
    return Message(role="system", content=content_of(texts)) if texts else None


def _assistant(blocks: list[dict[str, Any]], at: str) -> list[Message]:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[ToolCall] = []
    for index, block in enumerate(blocks):
        here = f"{at}.{index}"
        kind = block.get("type")
        if kind == "thinking":
            thought = block.get("thinking")
            thoughts.append(thought if isinstance(thought, str) else _refuse(f"{here}.thinking", "a text is expected"))
        elif kind == "tool_use":
            calls.append(_call(block, here))
        elif kind not in _UNSEEN:
            texts.append(_text(block, here))
    return [
        Message(
            role="assistant",
            content=content_of(texts),
            reasoning_content="\n".join(filter(None, thoughts)) or None,
            tool_calls=tuple(calls),
        )
    ]


def _other(role: str, blocks: list[dict[str, Any]], at: str) -> list[Message]:
    """A user's turn: results of tools are messages of their own, in the order in which they stand."""
    found: list[Message] = []
    pieces: list[str | MediaPart] = []
    for index, block in enumerate(blocks):
        here = f"{at}.{index}"
        if block.get("type") == "tool_result" and role == "user":
            if pieces:
                found.append(Message(role=role, content=content_of(pieces)))
                pieces = []
            found.append(_result(block, here))
        else:
            pieces.append(_piece(block, here))
    if pieces or not found:
        found.append(Message(role=role, content=content_of(pieces)))
    return found


def _call(block: dict[str, Any], at: str) -> ToolCall:
    id, name, given = block.get("id"), block.get("name"), block.get("input", {})
    if not isinstance(id, str):
        _refuse(f"{at}.id", "a text is expected")
    if not isinstance(name, str) or not name:
        _refuse(f"{at}.name", "a text is expected")
    if not isinstance(given, dict):
        _refuse(f"{at}.input", "an object is expected")
    return ToolCall(id=id, name=name, arguments=msgspec.json.encode(given).decode())


def _result(block: dict[str, Any], at: str) -> Message:
    id = block.get("tool_use_id")
    if not isinstance(id, str):
        _refuse(f"{at}.tool_use_id", "a text is expected")
    content = block.get("content")
    blocks = [] if content is None else _blocks(content, f"{at}.content")
    pieces = [_piece(part, f"{at}.content.{index}") for index, part in enumerate(blocks)]
    if block.get("is_error") is True:
        first, *rest = pieces or [""]
        pieces = ["Error: " + first, *rest] if isinstance(first, str) else ["Error:", first, *rest]
    return Message(role="tool", content=content_of(pieces), tool_call_id=id)


def _blocks(content: Any, at: str) -> list[dict[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        _refuse(at, "a text or a list of blocks is expected")
    for index, block in enumerate(content):
        if not isinstance(block, dict):
            _refuse(f"{at}.{index}", "a block is expected, which is an object")
    return content


def _piece(block: dict[str, Any], at: str) -> str | MediaPart:
    return _image(block, at) if block.get("type") == "image" else _text(block, at)


def _image(block: dict[str, Any], at: str) -> MediaPart:
    source = block.get("source")
    kind = source.get("type") if isinstance(source, dict) else None
    if isinstance(source, dict) and kind == "url":
        url = source.get("url")
        return MediaPart(
            "image", url if isinstance(url, str) else _refuse(f"{at}.source.url", "a text is expected"), at, f"{at}.source.url"
        )
    if isinstance(source, dict) and kind == "base64":
        field = f"{at}.source.data"
        data = source.get("data")
        if not isinstance(data, str) or not data:
            _refuse(field, "a picture in base64 is expected")
        return MediaPart("image", f"data:image/*;base64,{data}", at, field)
    return _refuse(f"{at}.source.type", "'base64' or 'url' is expected; files are not kept here")


def _text(block: dict[str, Any], at: str) -> str:
    kind = block.get("type")
    if kind == "text":
        text = block.get("text")
        return text if isinstance(text, str) else _refuse(f"{at}.text", "a text is expected")
    if kind == "document":
        return _document(block, at)
    return _refuse(f"{at}.type", f"a block of type {str(kind)[:40]!r} cannot stand here")


def _document(block: dict[str, Any], at: str) -> str:
    source = block.get("source")
    kind = source.get("type") if isinstance(source, dict) else None
    if not isinstance(source, dict) or kind not in ("text", "content"):
        raise NotSupported(f"Field '{at}.source': only documents of text can be read", param=f"{at}.source")
    if kind == "content":
        parts = _blocks(source.get("content"), f"{at}.source.content")
        text = "\n".join(_text(part, f"{at}.source.content.{index}") for index, part in enumerate(parts))
    else:
        data = source.get("data")
        text = data if isinstance(data, str) else _refuse(f"{at}.source.data", "a text is expected")
    title = block.get("title")
    return f"{title}\n\n{text}" if isinstance(title, str) and title else text


def _refuse(field: str, reason: str) -> NoReturn:
    raise InvalidRequest(f"Field '{field}': {reason}", param=field)
