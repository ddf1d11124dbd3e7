"""Grammars, schemas and their envelopes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from puna.api.constraints import MAX_SOURCE, decode_constraint
from puna.api.fields import ConstraintFields
from puna.errors import InvalidRequest
from puna.types import Constraint
from tests.fakes import FakeEngine, say
from tests.web import client

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
ANY = {"type": "object"}


def schema(value: Any, *, strict: bool = False) -> Constraint:
    return Constraint("json_schema", json.dumps(value, separators=(",", ":")), strict)


@pytest.mark.parametrize(
    "fields, constraint, name",
    [
        ({}, None, None),
        ({"grammar": "", "json_schema": None, "regex": "", "response_format": {"type": "text"}}, None, None),
        ({"grammar": 'root ::= "a"'}, Constraint("gbnf", 'root ::= "a"'), "grammar"),
        ({"json_schema": SCHEMA}, schema(SCHEMA), "json_schema"),
        ({"json_schema": {}}, schema(ANY), "json_schema"),
        ({"response_format": {"type": "json_object"}}, schema(ANY), "response_format.schema"),
        ({"response_format": {"type": "json_object", "schema": SCHEMA}}, schema(SCHEMA), "response_format.schema"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": SCHEMA}}},
            schema(SCHEMA, strict=True),
            "response_format.json_schema.schema",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": SCHEMA}},
            schema(SCHEMA),
            "response_format.json_schema.schema",
        ),
        ({"response_format": {"type": "json_schema", "schema": SCHEMA}}, schema(SCHEMA), "response_format.schema"),
        (
            {"response_format": {"type": "json_object", "schema": SCHEMA, "strict": True}},
            schema(SCHEMA, strict=True),
            "response_format.schema",
        ),
        ({"regex": "a+"}, Constraint("regex", "a+"), "regex"),
        ({"lark": 'start: "x"'}, Constraint("lark", 'start: "x"'), "lark"),
        ({"choice": ["yes", 'n"o', "é\n"]}, Constraint("choice", '["yes","n\\"o","é\\n"]'), "choice"),
    ],
)
def test_forms(fields: dict[str, Any], constraint: Constraint | None, name: str | None) -> None:
    assert decode_constraint(ConstraintFields.model_validate(fields)) == (constraint, name)


@pytest.mark.parametrize(
    "fields, param",
    [
        ({"grammar": "x", "json_schema": SCHEMA}, "json_schema"),
        ({"regex": "x", "response_format": {"type": "json_object"}}, "regex"),
        ({"json_schema": "x"}, "json_schema"),
        ({"json_schema": [1]}, "json_schema"),
        ({"response_format": {"type": "json_object", "schema": 123}}, "response_format.schema"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}}, "response_format.json_schema.schema"),
        ({"grammar": "x" * (MAX_SOURCE + 1)}, "grammar"),
        ({"lark": "x" * (MAX_SOURCE + 1)}, "lark"),
    ],
)
def test_bad_ones_are_refused_by_name(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode_constraint(ConstraintFields.model_validate(fields))
    assert caught.value.param == param


BODY = {"prompt": "x", "messages": [{"role": "user", "content": "x"}]}


@pytest.mark.parametrize("path", ["/completion", "/v1/completions", "/v1/chat/completions"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "fields, param",
    [
        ({"grammar": "answer ::= 'yes'"}, "grammar"),
        ({"grammar": "root ::= " + "(" * 60_000 + '"a"' + ")" * 60_000}, "grammar"),
        ({"regex": "a**("}, "regex"),
        ({"lark": "start: ("}, "lark"),
        ({"json_schema": {"type": "hiccup"}}, "json_schema"),
        ({"response_format": {"type": "json_object", "schema": {"type": 123}}}, "response_format.schema"),
    ],
    ids=["no-root", "nested", "regex", "lark", "schema", "envelope"],
)
async def test_a_bad_constraint_is_a_plain_400_with_the_fields_name(path: str, stream: bool, fields: Any, param: str) -> None:
    engine = FakeEngine()
    async with client(engine) as http:
        reply = await http.post(path, json={**BODY, **fields, "stream": stream})
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["param"] == param
    assert engine.streams == []


@pytest.mark.parametrize("path", ["/completion", "/v1/completions", "/v1/chat/completions"])
async def test_what_the_engine_refuses_later_names_the_field_too(path: str) -> None:
    engine = FakeEngine(script=lambda _: [0.001, InvalidRequest("too many states")])
    async with client(engine) as http:
        reply = await http.post(path, json={**BODY, "choice": ["a", "b"]})
        assert reply.status_code == 400 and reply.json()["error"]["param"] == "choice"
        reply = await http.post(path, json={**BODY, "choice": ["a", "b"], "stream": True})
        assert reply.status_code == 200 and "too many states" in reply.text
    assert all(stream.closed for stream in engine.streams)


async def test_a_good_constraint_streams_as_usual() -> None:
    async with client(FakeEngine(script=lambda _: say("a", pause=0.001))) as http:
        reply = await http.post("/completion", json={"prompt": "x", "grammar": 'root ::= "a"', "stream": True})
    assert reply.status_code == 200 and '"content":"a"' in reply.text
