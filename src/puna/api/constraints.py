"""The constraint fields: at most one of them makes a `Constraint`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from puna.api.fields import ConstraintFields, JsonSchemaFormat, ResponseFormat
from puna.errors import InvalidRequest
from puna.types import Constraint

MAX_SOURCE = 512 * 1024
"""Most characters of a grammar or a schema."""

_ANY_OBJECT = {"type": "object"}

SOURCES = ("grammar", "json_schema", "response_format", "regex", "choice", "lark")
"""Fields that hold a constraint."""

Kind = Literal["gbnf", "json_schema", "regex", "lark", "choice"]


def decode_constraint(fields: ConstraintFields) -> tuple[Constraint | None, str | None]:
    """The constraint and the name of the field it came from. Raises `InvalidRequest` for more than one, or a bad one."""
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
        found.append(_from("choice", "choice", msgspec.json.encode(fields.choice).decode()))
    if fields.lark:
        found.append(_from("lark", "lark", fields.lark))
    if len(found) > 1:
        first, second = found[0][0], found[1][0]
        raise InvalidRequest(f"Field '{second}': the output is constrained by '{first}' already", param=second)
    if not found:
        return None, None
    name, constraint = found[0]
    return constraint, name


def with_form(values: dict[str, Any], form: ResponseFormat | None, field: str) -> None:
    """Add the form of the answer, as a dialect's own `field` gives it, to a request's fields.

    Raises `InvalidRequest` that names this field where another one constrains the answer already.
    """
    if form is None:
        return
    if other := next((name for name in SOURCES if values.get(name)), None):
        raise InvalidRequest(f"Field '{field}': the output is constrained by '{other}' already", param=field)
    values["response_format"] = form


def _from(name: str, kind: Kind, source: str, *, strict: bool = False) -> tuple[str, Constraint]:
    if len(source) > MAX_SOURCE:
        raise InvalidRequest(f"Field '{name}': longer than {MAX_SOURCE} characters", param=name)
    return name, Constraint(kind, source, strict)


def _from_schema(name: str, schema: Any, *, strict: bool = False) -> tuple[str, Constraint]:
    if not isinstance(schema, (dict, bool)):
        raise InvalidRequest(f"Field '{name}': a JSON schema is an object", param=name)
    source = msgspec.json.encode(_ANY_OBJECT if schema == {} else schema).decode()
    return _from(name, "json_schema", source, strict=strict)


def _from_format(form: ResponseFormat) -> tuple[str, Constraint]:
    strict = form.strict is True or (form.json_schema is not None and form.json_schema.strict is True)
    if form.type == "json_object":
        schema = _ANY_OBJECT if form.json_object_schema is None else form.json_object_schema
        return _from_schema("response_format.schema", schema, strict=strict)
    at = "response_format.json_schema.schema"
    if form.json_schema is not None:
        schema = _enveloped(form.json_schema)
    else:
        schema, at = form.json_object_schema, "response_format.schema"
    if schema is None:
        raise InvalidRequest(
            "Field 'response_format.json_schema.schema': Field required", param="response_format.json_schema.schema"
        )
    return _from_schema(at, schema, strict=strict)


def _enveloped(envelope: JsonSchemaFormat) -> Any:
    """The schema in OpenAI's envelope, or the envelope itself where it is a schema without one."""
    if envelope.json_schema is not None:
        return envelope.json_schema
    rest = envelope.model_extra or {}
    return rest if rest.keys() & {"type", "properties", "$ref", "anyOf", "allOf", "oneOf", "enum", "const", "items"} else None
