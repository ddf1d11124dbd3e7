"""The constraint fields: at most one of them makes a `Constraint`."""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec

from puna.api.fields import ConstraintFields, ResponseFormat
from puna.errors import InvalidRequest, NotSupported
from puna.types import Constraint

MAX_SOURCE = 256 * 1024
"""Most characters of a grammar or a schema."""

_ANY_OBJECT = {"type": "object"}

Kind = Literal["gbnf", "json_schema", "regex", "lark"]


def decode_constraint(fields: ConstraintFields) -> tuple[Constraint | None, str | None]:
    """The constraint and the name of the field it came from. Raises `InvalidRequest` for more than one, or a bad one."""
    _check_lazy(fields)
    found: list[tuple[str, Constraint]] = []
    if fields.grammar:
        found.append(_from("grammar", "gbnf", fields.grammar))
    if fields.json_schema is not None:
        found.append(_from_schema("json_schema", fields.json_schema))
    if fields.response_format is not None and fields.response_format.type != "text":
        found.append(_from_format(fields.response_format))
    if fields.regex:
        found.append(_from("regex", "regex", fields.regex))
    if fields.choice:
        options = " | ".join(json.dumps(option, ensure_ascii=False) for option in fields.choice)
        found.append(_from("choice", "lark", f"start: {options}\n"))
    if fields.lark:
        found.append(_from("lark", "lark", fields.lark))
    if len(found) > 1:
        first, second = found[0][0], found[1][0]
        raise InvalidRequest(f"Field '{second}': the output is constrained by '{first}' already", param=second)
    if not found:
        return None, None
    name, constraint = found[0]
    return constraint, name


def _from(name: str, kind: Kind, source: str) -> tuple[str, Constraint]:
    if len(source) > MAX_SOURCE:
        raise InvalidRequest(f"Field '{name}': longer than {MAX_SOURCE} characters", param=name)
    return name, Constraint(kind, source)


def _from_schema(name: str, schema: Any) -> tuple[str, Constraint]:
    if not isinstance(schema, (dict, bool)):
        raise InvalidRequest(f"Field '{name}': a JSON schema is an object", param=name)
    source = msgspec.json.encode(_ANY_OBJECT if schema == {} else schema).decode()
    return _from(name, "json_schema", source)


def _from_format(form: ResponseFormat) -> tuple[str, Constraint]:
    if form.type == "json_object":
        schema = _ANY_OBJECT if form.json_object_schema is None else form.json_object_schema
        return _from_schema("response_format.schema", schema)
    envelope = form.json_schema.json_schema if form.json_schema is not None else form.json_object_schema
    at = "response_format.json_schema.schema"
    if envelope is None:
        raise InvalidRequest(f"Field '{at}': Field required", param=at)
    return _from_schema(at, envelope)


def _check_lazy(fields: ConstraintFields) -> None:
    if not fields.grammar_lazy:
        return
    if not fields.grammar_triggers:
        raise InvalidRequest("Field 'grammar_triggers': a lazy grammar needs at least one", param="grammar_triggers")
    if fields.grammar:
        raise NotSupported("Field 'grammar_lazy': lazy grammars are not supported", param="grammar_lazy")
