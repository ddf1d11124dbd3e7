"""The fields that say what an answer is to be mean the same on every route that answers a conversation."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from puna.api.fields import AnswerFields
from puna.types import Generation
from tests.fakes import FACTS, FakeEngine
from tests.unit.api.test_anthropic import TEMPLATE
from tests.web import client

TURN = [{"role": "user", "content": "hi"}]
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": TURN},
    "/v1/messages": {"messages": TURN},
    "/v1/responses": {"input": "hi"},
}
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
SHARED: dict[str, Any] = {
    "temperature": 0.3,
    "dynatemp_range": 0.1,
    "dynatemp_exponent": 1.5,
    "top_k": 7,
    "top_p": 0.5,
    "min_p": 0.2,
    "typical_p": 0.7,
    "top_n_sigma": 1.5,
    "xtc_probability": 0.5,
    "xtc_threshold": 0.2,
    "repeat_last_n": 32,
    "penalty_last_n": 16,
    "repeat_penalty": 1.5,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.25,
    "dry_multiplier": 0.5,
    "dry_base": 2.0,
    "dry_allowed_length": 3,
    "dry_penalty_last_n": 20,
    "dry_sequence_breakers": ["x"],
    "mirostat": 1,
    "mirostat_mode": 2,
    "mirostat_tau": 4.0,
    "mirostat_eta": 0.2,
    "adaptive_target": 0.5,
    "adaptive_decay": 0.5,
    "samplers": ["top_k", "temperature"],
    "seed": 42,
    "logit_bias": {"5": 3.0},
    "ignore_eos": True,
    "min_tokens": 2,
    "min_keep": 2,
    "grammar": 'root ::= "a"',
    "json_schema": SCHEMA,
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}},
    "regex": "a+",
    "choice": ["a", "b"],
    "lark": 'start: "a"',
    "preserved_tokens": ["<|im_end|>"],
    "n_predict": 9,
    "max_completion_tokens": 10,
    "max_tokens": 11,
    "stop": ["x"],
    "stop_sequences": ["y"],
    "cache_prompt": False,
    "id_slot": 2,
    "n_cache_reuse": 5,
    "n_keep": 3,
    "n_discard": 4,
    "n_indent": 2,
    "t_max_predict_ms": 500,
    "speculative": {"type": "none"},
    "speculative.type": "none",
    "speculative.types": "none",
    "deterministic": True,
}
ELSEWHERE = {
    "lora": "there are no adapters here; see the test below",
    "sse_ping_interval": "is about the stream",
    "logit_bias_type": "is about another field",
    "grammar_lazy": "goes with a grammar; see the test below",
    "grammar_triggers": "goes with a lazy one",
    "n_probs": "probabilities are refused",
    "logprobs": "probabilities are refused",
    "top_logprobs": "probabilities are refused",
    "post_sampling_probs": "goes with them",
    "speculative.n_max": "see the test below",
    "speculative.n_min": "see the test below",
    "speculative.p_min": "see the test below",
}
UNPRESERVED: dict[str, Any] = {
    "grammar_triggers": [{"type": "word", "value": "a"}],
    "grammar_lazy": True,
    "grammar": 'root ::= "ab"',
}
"""A trigger that is one token has to be among the tokens that are kept."""
TOGETHER: list[dict[str, Any]] = [
    {**UNPRESERVED, "preserved_tokens": ["a"]},
    {"speculative.type": "ngram-simple", "speculative.n_max": 5, "speculative.n_min": 2, "speculative.p_min": 0.5},
]


async def generation(path: str, fields: dict[str, Any]) -> Generation:
    """What a route makes of the fields, apart from what it wants for itself."""
    engine = FakeEngine(facts=msgspec.structs.replace(FACTS, chat_template=TEMPLATE))
    async with client(engine) as web:
        reply = await web.post(path, json={**BODIES[path], "seed": 1, **fields})
    assert reply.status_code == 200, reply.text
    return msgspec.structs.replace(engine.last, want_progress=False)


def test_no_field_is_forgotten() -> None:
    names = {field.alias or name for name, field in AnswerFields.model_fields.items()}
    assert names == SHARED.keys() | ELSEWHERE.keys()


@pytest.mark.parametrize("fields", [*({name: value} for name, value in SHARED.items()), *TOGETHER], ids=str)
async def test_a_field_means_the_same_everywhere(fields: dict[str, Any]) -> None:
    expected = await generation("/v1/chat/completions", fields)
    for path in ("/v1/messages", "/v1/responses"):
        assert await generation(path, fields) == expected, path
    if fields.keys() & {"grammar", "json_schema", "response_format", "regex", "choice", "lark"}:
        assert expected.constraint is not None


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses"])
@pytest.mark.parametrize("fields", [{"lora": [{"id": 7, "scale": 1.0}]}, {"grammar": "answer ::= 'x'"}, UNPRESERVED], ids=str)
async def test_what_is_wrong_is_refused(path: str, fields: dict[str, Any]) -> None:
    async with client(FakeEngine(facts=msgspec.structs.replace(FACTS, chat_template=TEMPLATE))) as web:
        reply = await web.post(path, json={**BODIES[path], **fields})
    assert reply.status_code == 400 and next(iter(fields)) in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "form", "field"),
    [
        ("/v1/messages", {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}, "output_config.format"),
        ("/v1/responses", {"text": {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA}}}, "text.format"),
    ],
)
@pytest.mark.parametrize("other", [{"grammar": 'root ::= "a"'}, {"response_format": {"type": "json_object"}}], ids=str)
async def test_two_forms_for_an_answer(path: str, form: dict[str, Any], field: str, other: dict[str, Any]) -> None:
    async with client(FakeEngine(facts=msgspec.structs.replace(FACTS, chat_template=TEMPLATE))) as web:
        reply = await web.post(path, json={**BODIES[path], **form, **other})
    assert reply.status_code == 400 and reply.json()["error"]["message"].startswith(f"Field '{field}'")
