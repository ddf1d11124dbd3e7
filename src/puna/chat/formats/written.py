"""Calls written as a family writes them, for templates that do not show the calls of earlier turns themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from puna.chat.formats.bodies.either import Either
from puna.chat.formats.bodies.envelope import Envelope
from puna.chat.formats.bodies.named import Named, spell_name
from puna.chat.formats.bodies.pythonic import Pythonic
from puna.chat.formats.bodies.tagged import Tagged
from puna.chat.formats.description import Calls
from puna.chat.messages import ToolCall

_PYTHON = {"true": "True", "false": "False", "null": "None"}


def can_write(calls: Calls) -> bool:
    """Whether calls of this description can be written. Names that hold an id or a number cannot."""
    body = calls.body.written if isinstance(calls.body, Either) else calls.body
    if isinstance(body, Tagged):
        return body.name_more is None
    return isinstance(body, (Envelope, Pythonic)) or (isinstance(body, Named) and body.spell is spell_name)


def write_calls(calls: Calls, made: Sequence[ToolCall]) -> str:
    """The text of calls that were made. Raises `TypeError` for a description whose calls cannot be written."""
    written = calls.between.join(f"{calls.call_begin}{_body(calls.body, call)}{calls.call_end}" for call in made)
    begin, end = calls.brackets if calls.array else ("", "")
    return f"{calls.begin}{begin}{written}{end}{calls.end}"


def _body(body: object, call: ToolCall) -> str:
    arguments = call.arguments.strip() or "{}"
    if isinstance(body, Either):
        body = body.written
    if isinstance(body, Envelope):
        own_id = f'"{body.id}": {_json(call.id)}' if body.id else ""
        members = [f'"{body.name}": {_json(call.name)}', f'"{body.arguments}": {arguments}']
        members = [own_id, *members] if body.id_first else [*members, own_id]
        begin, comma, end = body.layout
        return begin + comma.join(filter(None, members)) + end
    if isinstance(body, Named) and body.spell is spell_name:
        return f"{body.before}{call.name}{body.behind}{arguments}{body.after}"
    if isinstance(body, Tagged):
        pairs = "".join(_tagged(body, key, value) for key, value in _members(arguments))
        return f"{body.name_begin}{call.name}{body.name_end}{pairs}{body.end}"
    if isinstance(body, Pythonic):
        pairs = ", ".join(f"{key}={_python(value)}" for key, value in _members(arguments))
        return f"{call.name}{body.suffix}({pairs})"
    raise TypeError(f"calls with a body like {type(body).__name__} cannot be written")


def _tagged(body: Tagged, key: str, value: Any) -> str:
    if isinstance(value, str):
        begin, end = body.quotes if any(mark in value for mark in "<&\n") else ("", "")
        return f"{body.key_begin}{key}{body.key_end}{body.value_begin}{begin}{value}{end}{body.value_end}"
    return f"{body.key_begin}{key}{body.json_key_end or body.key_end}{body.value_begin}{_json(value)}{body.value_end}"


def _members(arguments: str) -> list[tuple[str, Any]]:
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        value = arguments
    # Arguments that are no object have no names; they are shown all the same.
    return list(value.items()) if isinstance(value, dict) else [("arguments", value)]


def _python(value: Any) -> str:
    if isinstance(value, (list, dict, str)):
        return _json(value)
    return _PYTHON.get(text := _json(value), text)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
