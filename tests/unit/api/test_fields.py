"""The generation fields on every route: types, ranges, aliases, nulls, defaults."""

from __future__ import annotations

import math
from typing import Any

import pytest

from puna.types import DEFAULT_SAMPLERS, Sampling
from tests.fakes import FakeEngine
from tests.web import client

ROUTES: list[tuple[str, dict[str, Any]]] = [
    ("/completion", {"prompt": "x"}),
    ("/v1/completions", {"prompt": "x"}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}),
]

BIG = 10**9
HOSTILE: list[tuple[str, Any]] = [
    ("n_discard", -32),
    ("n_discard", 2**63),
    ("n_keep", -5),
    ("n_keep", BIG),
    ("n_keep", 2**63),
    ("top_k", -1),
    ("top_k", 2**31),
    ("top_k", 1.5),
    ("n_probs", BIG),
    ("n_probs", -1),
    ("repeat_last_n", -7),
    ("repeat_last_n", 2**31),
    ("id_slot", 99),
    ("id_slot", -2),
    ("seed", 2**64),
    ("seed", -2),
    ("seed", 2**32 - 1),
    ("temperature", -1),
    ("temperature", 1e300),
    ("temperature", 10**400),
    ("temperature", 1e-300),
    ("temperature", True),
    ("min_keep", BIG),
    ("min_keep", -1),
    ("n_indent", 10**6),
    ("n_predict", -7),
    ("n_predict", 2**31),
    ("max_tokens", 10**400),
    ("top_p", -3.0),
    ("top_p", 1.01),
    ("min_p", 7.5),
    ("typical_p", -1),
    ("top_n_sigma", 1e300),
    ("xtc_probability", 1e9),
    ("xtc_threshold", -5),
    ("repeat_penalty", 0),
    ("repeat_penalty", -1e300),
    ("presence_penalty", 1e300),
    ("frequency_penalty", -1e300),
    ("dry_multiplier", 1e300),
    ("dry_base", 0.5),
    ("dry_allowed_length", 2**31),
    ("dry_penalty_last_n", -9),
    ("dynatemp_range", -1e300),
    ("mirostat", 3),
    ("mirostat_tau", -1e300),
    ("min_tokens", 2**31),
    ("t_max_predict_ms", 2**63),
    ("n_cmpl", BIG),
    ("n", 0),
    ("best_of", 10**9),
    ("n_cache_reuse", 2**31),
]


@pytest.mark.parametrize("path, body", ROUTES)
async def test_hostile_numbers_are_tamed_or_refused_by_name(path: str, body: dict[str, Any]) -> None:
    engine = FakeEngine()
    async with client(engine) as http:
        for field, value in HOSTILE:
            reply = await http.post(path, json={**body, field: value})
            assert reply.status_code in (200, 400), (field, value, reply.text)
            if reply.status_code == 400:
                assert reply.json()["error"]["param"] == field
    for generation in engine.generations:
        check_sampling(generation.sampling)
        assert -1 <= generation.max_tokens < 2**31 and -1 <= generation.id_slot < 4


def check_sampling(sampling: Sampling) -> None:
    for name in sampling.__struct_fields__:
        value = getattr(sampling, name)
        if isinstance(value, float):
            assert math.isfinite(value) and abs(value) < 3.5e38, name
        elif isinstance(value, int):
            assert -(2**31) <= value < 2**32, name


@pytest.mark.parametrize("path, body", ROUTES)
@pytest.mark.parametrize(
    "field, value",
    [
        ("temperature", "hot"),
        ("temperature", [1]),
        ("top_k", "40"),
        ("n_predict", 2.5),
        ("seed", {}),
        ("stop", 5),
        ("stop", [5]),
        ("stop", {"a": 1}),
        ("stream", "yes"),
        ("stream", 1),
        ("grammar", 5),
        ("samplers", 5),
        ("samplers", ["top_k", "nothing"]),
        ("samplers", "kq"),
        ("ignore_eos", "maybe"),
        ("dry_sequence_breakers", []),
        ("dry_sequence_breakers", [1]),
        ("response_fields", 5),
        ("response_format", "json"),
        ("response_format", {"type": "sound"}),
        ("response_format", {}),
        ("stream_options", 5),
        ("stream_options", {"include_usage": "x"}),
        ("lora", 5),
        ("lora", [{"id": 0}]),
        ("logit_bias", "x"),
        ("model", 5),
        ("choice", []),
        ("json_schema", "x"),
        ("grammar_lazy", "junk"),
        ("grammar_triggers", "junk"),
        ("preserved_tokens", [1]),
    ],
)
async def test_wrong_types_are_400_by_name(path: str, body: dict[str, Any], field: str, value: Any) -> None:
    async with client() as http:
        error = (await http.post(path, json={**body, field: value})).json()["error"]
    assert error["code"] == 400 and error["param"].split(".")[0] == field


@pytest.mark.parametrize("path, body", ROUTES)
async def test_null_means_absent(path: str, body: dict[str, Any]) -> None:
    from puna.api.native.schema import CompletionRequest
    from puna.api.openai.schema import ChatCompletionRequest, LegacyCompletionRequest

    models = (CompletionRequest, LegacyCompletionRequest, ChatCompletionRequest)
    names = {name for model in models for name in model.model_fields} | {"user", "store", "metadata", "service_tier"}
    engine = FakeEngine()
    async with client(engine) as http:
        assert (await http.post(path, json={**dict.fromkeys(names), **body})).status_code == 200
        assert (await http.post(path, json=body)).status_code == 200
    first, second = engine.generations
    assert first.sampling.seed != second.sampling.seed
    assert {**vars_of(first), "sampling": None} == {**vars_of(second), "sampling": None}


def vars_of(generation: Any) -> dict[str, Any]:
    return {name: getattr(generation, name) for name in generation.__struct_fields__}


@pytest.mark.parametrize("path, body", ROUTES)
async def test_defaults_come_from_the_settings(path: str, body: dict[str, Any]) -> None:
    engine = FakeEngine()
    defaults = {"temperature": 0.25, "top_k": 7.0, "seed": 11.0}
    async with client(engine, sampling_defaults=defaults, n_predict=5) as http:
        await http.post(path, json=body)
        await http.post(path, json={**body, "temperature": 1, "seed": -1, "n_predict": 9})
    first, second = engine.generations
    assert first.sampling == Sampling(temperature=0.25, top_k=7, seed=11) and type(first.sampling.top_k) is int
    assert first.max_tokens == 5
    assert (second.sampling.temperature, second.sampling.top_k, second.max_tokens) == (1.0, 7, 9)


@pytest.mark.parametrize(
    "fields, name, value",
    [
        ({"temperature": -5}, "temperature", 0.0),
        ({"temperature": 1e-9}, "temperature", 0.0),
        ({"top_k": -1}, "top_k", 0),
        ({"top_k": 40.0}, "top_k", 40),
        ({"penalty_last_n": 9}, "repeat_last_n", 9),
        ({"repeat_last_n": 8, "penalty_last_n": 9}, "repeat_last_n", 8),
        ({"mirostat_mode": 2}, "mirostat", 2),
        ({"dry_base": 0.5}, "dry_base", 1.75),
        ({"dry_base": 2}, "dry_base", 2.0),
        ({"min_keep": BIG}, "min_keep", 260),
        ({"samplers": []}, "samplers", ()),
        ({"samplers": "kpt"}, "samplers", ("top_k", "top_p", "temperature")),
        (
            {"samplers": ["TOP-K", "minp", "temp", "nucleus", "typical_p"]},
            "samplers",
            ("top_k", "min_p", "temperature", "top_p", "typ_p"),
        ),
        ({"samplers": [*DEFAULT_SAMPLERS, "adaptive_p"]}, "samplers", (*DEFAULT_SAMPLERS, "adaptive_p")),
        ({"dry_sequence_breakers": ["x"]}, "dry_sequence_breakers", ("x",)),
        ({"min_tokens": 3}, "min_tokens", 3),
        ({"ignore_eos": True}, "ignore_eos", True),
    ],
)
async def test_values_reach_the_engine(fields: dict[str, Any], name: str, value: Any) -> None:
    engine = FakeEngine()
    async with client(engine) as http:
        for path, body in ROUTES:
            reply = await http.post(path, json={**body, **fields})
            assert reply.status_code == 200, reply.text
            assert getattr(engine.last.sampling, name) == value


@pytest.mark.parametrize(
    "fields, stop",
    [
        ({"stop": "a"}, ("a",)),
        ({"stop": ["a", "", "b", "a"]}, ("a", "b")),
        ({"stop": ""}, ()),
        ({"stop_sequences": ["x"]}, ("x",)),
        ({"stop": ["y"], "stop_sequences": ["x"]}, ("y",)),
    ],
)
async def test_stop_strings(fields: dict[str, Any], stop: tuple[str, ...]) -> None:
    engine = FakeEngine()
    async with client(engine) as http:
        for path, body in ROUTES:
            assert (await http.post(path, json={**body, **fields})).status_code == 200
            assert engine.last.stop == stop


@pytest.mark.parametrize("alias", ["n_predict", "max_tokens", "max_completion_tokens"])
async def test_limits_have_aliases(alias: str) -> None:
    engine = FakeEngine()
    async with client(engine) as http:
        for path, body in ROUTES:
            for limit in (0, 3):
                assert (await http.post(path, json={**body, alias: limit})).status_code == 200
                assert engine.last.max_tokens == limit


async def test_slots_wrap_round() -> None:
    engine = FakeEngine()
    async with client(engine) as http:
        for asked, given in ((-1, -1), (0, 0), (3, 3), (99, 3)):
            await http.post("/completion", json={"prompt": "x", "id_slot": asked})
            assert engine.last.id_slot == given


@pytest.mark.parametrize("path, body", ROUTES)
@pytest.mark.parametrize(
    "fields, status",
    [
        ({"best_of": 1}, 200),
        ({"best_of": 2, "n": 2}, 200),
        ({"best_of": 1, "n": 2}, 400),
        ({"n_cache_reuse": 0}, 200),
        ({"n_cache_reuse": 256}, 200),
        ({"n_cache_reuse": -1}, 400),
        ({"lora": []}, 200),
        ({"lora": [{"id": 0, "scale": 1}]}, 400),
        ({"grammar_lazy": True}, 400),
        ({"grammar_lazy": True, "grammar": "root ::= x", "grammar_triggers": "x"}, 400),
    ],
)
async def test_what_is_not_served_is_refused_unless_it_changes_nothing(
    path: str, body: dict[str, Any], fields: dict[str, Any], status: int
) -> None:
    engine = FakeEngine()
    async with client(engine) as http:
        reply = await http.post(path, json={**body, **fields})
    assert reply.status_code == status, reply.text
    if status != 200:
        assert reply.json()["error"]["param"] in {*fields, "grammar_triggers", "lora.0.id"}
        assert engine.streams == []


@pytest.mark.parametrize("key", ["chat_parser", "chat_format", "generation_prompt", "__class__", "produced", "sampling", "user"])
@pytest.mark.parametrize("junk", ["junk", -1, [["x"]], {"a": {}}])
async def test_unknown_fields_change_nothing(key: str, junk: Any) -> None:
    engine = FakeEngine()
    async with client(engine) as http:
        for path, body in ROUTES:
            for extra in ({}, {key: junk}):
                assert (await http.post(path, json={**body, "seed": 1, **extra})).status_code == 200
    for plain, junked in zip(engine.generations[::2], engine.generations[1::2], strict=True):
        assert plain == junked
