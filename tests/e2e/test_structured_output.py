"""Constrained output on real servers: every form and dialect, warnings, lazy grammars, deaths and hostile input."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.e2e.checks import is_sound
from tests.e2e.conftest import ServerMaker
from tests.e2e.dialects import CHAT, COMPLETIONS, DIALECTS, NATIVE, Dialect
from tests.e2e.server import Server
from tests.e2e.sse import DONE, join_text

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 0, "maximum": 999},
        "kind": {"enum": ["red", "green", "blue"]},
        "where": {"type": "object", "properties": {"x": {"type": "boolean"}}, "required": ["x"], "additionalProperties": False},
    },
    "required": ["id", "kind", "where"],
    "additionalProperties": False,
}
LOSSY = {**SCHEMA, "properties": {**SCHEMA["properties"], "id": {"type": "string", "pattern": "^(?=a)a$", "enum": ["a"]}}}  # type: ignore[dict-item]  # it has properties
HOT = {"temperature": 1.5, "top_k": 0, "top_p": 1, "min_p": 0}


def valid(text: str, schema: Any = SCHEMA) -> bool:
    return bool(Draft202012Validator(schema).is_valid(json.loads(text)))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    "fields",
    [
        {"json_schema": SCHEMA},
        {"response_format": {"type": "json_object", "schema": SCHEMA}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": SCHEMA}}},
        {"response_format": {"type": "json_schema", "schema": SCHEMA}},
        {"response_format": {"type": "json_schema", "json_schema": SCHEMA}},
    ],
    ids=["field", "object", "envelope", "direct", "without-envelope"],
)
def test_schemas(tiny_server: Server, dialect: Dialect, fields: dict[str, Any], stream: bool) -> None:
    for seed in range(3):
        answer = dialect.ask(tiny_server, "x", stream=stream, seed=seed, **HOT, **fields)
        assert valid(answer.text), answer.text
        assert answer.finish in ("eos", "stop")


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_any_object(tiny_server: Server, dialect: Dialect) -> None:
    answers = [
        dialect.ask(tiny_server, "x", stream=False, seed=seed, limit=60, response_format={"type": "json_object"}, **HOT)
        for seed in range(10)
    ]
    for answer in answers:
        if answer.finish != "length" and answer.finish != "limit":
            assert isinstance(json.loads(answer.text), dict)
        else:
            assert answer.text.startswith("{")


@pytest.mark.parametrize(
    ("fields", "allowed"),
    [
        ({"choice": ["yes", 'n"o', "maybe\n", "é😀"]}, {"yes", 'n"o', "maybe\n", "é😀"}),
        ({"choice": ["a", "ab", ""]}, {"a", "ab", ""}),
        ({"regex": "[ab]{2}"}, {"aa", "ab", "ba", "bb"}),
        ({"lark": 'start: "x" NUMBER\nNUMBER: /[1-3]/'}, {"x1", "x2", "x3"}),
        ({"grammar": 'root ::= ("a" | "b") # one\n'}, {"a", "b"}),
        ({"grammar": "", "choice": ["only"]}, {"only"}),
    ],
    ids=["choice", "prefixes", "regex", "lark", "gbnf", "empty-grammar"],
)
def test_other_constraints(tiny_server: Server, fields: dict[str, Any], allowed: set[str]) -> None:
    for seed in range(6):
        for dialect in DIALECTS:
            assert dialect.ask(tiny_server, "x", stream=seed % 2 == 0, seed=seed, **HOT, **fields).text in allowed


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_what_is_not_enforced_is_said(tiny_server: Server, dialect: Dialect) -> None:
    body = dialect.body("x", json_schema=LOSSY)
    reply = tiny_server.json(dialect.path, body)
    (warning,) = reply["warnings"]
    assert "#/properties/id" in warning and "'pattern'" in warning
    assert valid(dialect.read(reply).text, LOSSY)
    frames = tiny_server.frames(dialect.path, body)
    assert [frame for frame in frames if frame is not DONE and "warnings" in frame][-1]["warnings"] == [warning]
    assert "warnings" in (frames[-1] if dialect is NATIVE else frames[-2])
    assert "'pattern'" in tiny_server.log
    assert "warnings" not in tiny_server.json(dialect.path, dialect.body("x", json_schema=SCHEMA))


@pytest.mark.parametrize("dialect", [COMPLETIONS, CHAT], ids=lambda dialect: dialect.name)
def test_strict_schemas_are_enforced_or_refused(tiny_server: Server, dialect: Dialect) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": LOSSY}}
    for stream in (False, True):
        reply = tiny_server.post(dialect.path, dialect.body("x", response_format=form, stream=stream))
        assert is_sound(reply, statuses=(400,))
        error = reply.json()["error"]
        assert "#/properties/id: 'pattern'" in error["message"]
        assert error["param"] == "response_format.json_schema.schema"


@pytest.mark.parametrize(
    "fields",
    [
        {"grammar": 'root ::= "a"', "json_schema": SCHEMA},
        {"regex": "a", "choice": ["a"]},
        {"lark": 'start: "a"', "response_format": {"type": "json_object"}},
    ],
)
def test_one_constraint_at_a_time(tiny_server: Server, fields: dict[str, Any]) -> None:
    for dialect in DIALECTS:
        reply = tiny_server.post(dialect.path, dialect.body("x", **fields))
        assert is_sound(reply, statuses=(400,))
        assert all(name in reply.json()["error"]["message"] for name in fields)


def first_token(server: Server) -> tuple[int, str]:
    """The token that the model says first, and its text."""
    reply = server.json("/completion", {"prompt": "once", "n_predict": 1, "temperature": 0, "return_tokens": True})
    return reply["tokens"][0], reply["content"]


def test_lazy_grammars(tiny_server: Server) -> None:
    token, text = first_token(tiny_server)
    grammar = f'root ::= <[{token}]> " and " ("this" | "that")'
    trigger = {"type": 0, "value": text, "token": token}
    body = {"prompt": "once", "temperature": 0, "grammar": grammar, "grammar_lazy": True, "grammar_triggers": [trigger]}
    reply = tiny_server.json("/completion", body)
    assert reply["content"] in (f"{text} and this", f"{text} and that")
    settings = reply["generation_settings"]
    assert settings["grammar_lazy"] is True and settings["grammar_triggers"] == [trigger]
    assert join_text(tiny_server.frames("/completion", body)) == reply["content"]
    never = {**body, "grammar_triggers": [{"type": "word", "value": "\x00 never"}], "n_predict": 5, "ignore_eos": True}
    assert tiny_server.json("/completion", never)["tokens_predicted"] == 5


@pytest.mark.parametrize(
    ("triggers", "param"),
    [
        (None, "grammar_triggers"),
        ([], "grammar_triggers"),
        (["word"], "grammar_triggers.0"),
        ([{"type": 9, "value": "x"}], "grammar_triggers.0.type"),
        ([{"type": 1}], "grammar_triggers.0.value"),
        ([{"type": 1, "value": ""}], "grammar_triggers.0.value"),
        ([{"type": 1, "value": "a b c d"}, {"type": 0, "value": "x", "token": 10**9}], "grammar_triggers.1.token"),
        ([{"type": 1, "value": "<|im_start|>"}], "grammar_triggers.0"),
        ([{"type": 2, "value": "(?=x)"}], "grammar"),
    ],
)
def test_bad_triggers_are_refused_by_name(tiny_server: Server, triggers: Any, param: str) -> None:
    body = {"prompt": "x", "grammar": 'root ::= "a"', "grammar_lazy": True, "grammar_triggers": triggers}
    reply = tiny_server.post("/completion", body)
    assert is_sound(reply, statuses=(400,))
    assert reply.json()["error"]["param"] == param


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_preserved_tokens_are_shown(tiny_server: Server, dialect: Dialect) -> None:
    name = "<|im_start|>"
    grammar = f'root ::= {name} "x"'
    plain = dialect.ask(tiny_server, "x", stream=False, grammar=grammar)
    assert plain.text == "x"
    for stream in (False, True):
        for spelled in (grammar, f'root ::= "{name}x"'):
            answer = dialect.ask(tiny_server, "x", stream=stream, grammar=spelled, preserved_tokens=[name])
            assert answer.text == f"{name}x"
    reply = tiny_server.json(CHAT.path, CHAT.body("x", grammar=grammar, preserved_tokens=[name], logprobs=True))
    entries = reply["choices"][0]["logprobs"]["content"]
    assert b"".join(bytes(entry["bytes"]) for entry in entries) == f"{name}x".encode()


def test_several_answers_stops_and_probabilities(tiny_server: Server) -> None:
    reply = tiny_server.json(CHAT.path, CHAT.body("x", n=3, logprobs=True, top_logprobs=2, json_schema=SCHEMA, seed=1, **HOT))
    assert len(reply["choices"]) == 3
    for choice in reply["choices"]:
        text = choice["message"]["content"]
        assert valid(text)
        entries = choice["logprobs"]["content"]
        assert b"".join(bytes(entry["bytes"]) for entry in entries) == text.encode()
    stopped = NATIVE.ask(tiny_server, "x", stream=False, json_schema=SCHEMA, stop=['"where"'], **HOT)
    assert stopped.text.endswith(",") and stopped.finish == "word"


def test_a_schema_outlives_the_worker(slow_llama: Any, make_server: ServerMaker) -> None:
    server = make_server(slow_llama, "-c", "2048", "-np", "2", "-t", "1")
    many = {"type": "array", "items": SCHEMA, "minItems": 12, "maxItems": 12}
    with server.stream("/completion", {"prompt": "x", "json_schema": many, "seed": 4, **HOT}) as frames:
        seen = [next(frames) for _ in range(12)]
        os.kill(server.first_worker, signal.SIGKILL)
        seen += frames
    assert "error" not in seen[-1]
    assert valid(join_text(seen), many)


CHAIN = "start: r0\n" + "\n".join(f"r{i}: r{i + 1}" for i in range(33_000)) + '\nr33000: "x"\n'
HOSTILE = {
    "nested groups": {"grammar": "root ::= " + "(" * 60_000 + '"a"' + ")" * 60_000},
    "chain of rules": {"grammar": "\n".join(f"r{i} ::= r{i + 1}" for i in range(5000)) + '\nr5000 ::= "x"\nroot ::= r0'},
    "left recursion": {"grammar": 'root ::= root "a" | "b"'},
    "empty loop": {"grammar": 'root ::= ("a"*)*'},
    "2 MB": {"grammar": 'root ::= "' + "a" * 2_000_000 + '"'},
    "deep schema": {"json_schema": json.loads('{"items":' * 90 + "{}" + "}" * 90)},
    "doubled repetition": {"regex": "foo**"},
    "doubling terminals": {"lark": "start: R0\n" + "\n".join(f"R{i}: R{i + 1} R{i + 1}" for i in range(60)) + '\nR60: "x"\n'},
    "deep chain of rules": {"lark": CHAIN},
    "lookahead": {"regex": "(?=a)b"},
    "many words": {"regex": "|".join(f"w{i}" for i in range(60_000))},
    "endless object": {"json_schema": {"properties": {"n": {"$ref": "#"}}, "required": ["n"], "type": "object"}},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_constraints_are_refused_in_time(tiny_server: Server, name: str) -> None:
    tiny_server.json("/completion", {"prompt": "x", "n_predict": 1, "choice": ["a"]})  # so that nothing has to be started
    begin = time.monotonic()
    reply = tiny_server.post("/completion", {"prompt": "x", "n_predict": 1, **HOSTILE[name]}, timeout=10)
    assert time.monotonic() - begin < 4  # two seconds of work, on a machine that has other things to do
    assert is_sound(reply, statuses=(400,))
    tiny_server.assert_alive()
