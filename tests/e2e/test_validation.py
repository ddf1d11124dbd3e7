"""Whatever a client sends is answered with a 200 or a 400 that says why, and hurts nobody."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.checks import is_sound
from tests.e2e.dialects import CHAT, COMPLETIONS, DIALECTS, NATIVE, Dialect, forced
from tests.e2e.server import Server, resident_bytes

BIG = 10**9
HOSTILE_NUMBERS: list[tuple[str, Any]] = [
    ("n_discard", -32),
    ("n_discard", 2**63),
    ("n_keep", -5),
    ("n_keep", BIG),
    ("n_keep", 2**63),
    ("top_k", -1),
    ("top_k", 2**31),
    ("top_k", 2**63),
    ("n_probs", BIG),
    ("n_probs", -1),
    ("n_probs", 2**64),
    ("repeat_last_n", -7),
    ("repeat_last_n", 2**31),
    ("id_slot", 99),
    ("id_slot", -2),
    ("id_slot", 2**40),
    ("seed", 2**64),
    ("seed", -(2**40)),
    ("seed", 2**32 - 1),
    ("temperature", -1),
    ("temperature", 1e300),
    ("min_keep", BIG),
    ("min_keep", -1),
    ("n_indent", 10**6),
    ("n_indent", -1),
    ("n_predict", -7),
    ("n_predict", 2**31),
    ("n_predict", 2**63),
    ("top_p", -3.0),
    ("top_p", 1e300),
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
    ("dynatemp_exponent", 1e300),
    ("mirostat", 3),
    ("mirostat_tau", -1e300),
    ("mirostat_eta", 1e300),
    ("min_tokens", 2**31),
    ("min_tokens", -1),
    ("t_max_predict_ms", -1),
    ("t_max_predict_ms", 2**63),
    ("n_cmpl", BIG),
    ("n_cmpl", -1),
    ("n_cache_reuse", 2**31),
]


def test_hostile_numbers_are_refused_or_tamed(tiny_server: Server) -> None:
    before = resident_bytes(tiny_server.first_worker) + resident_bytes(tiny_server.pid)
    for field, value in HOSTILE_NUMBERS:
        body = {"prompt": "x", "n_predict": 2, field: value}
        if field == "n_predict":
            body["grammar"] = forced("ab")
        reply = tiny_server.post("/completion", body, timeout=5)
        assert is_sound(reply), (field, value)
        if reply.status_code == 400:
            assert reply.json()["error"]["param"] == field
        tiny_server.assert_alive()
    after = resident_bytes(tiny_server.first_worker) + resident_bytes(tiny_server.pid)
    assert after - before < 50_000_000


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize("field", ["temperature", "top_p", "repeat_penalty", "seed", "n_predict"])
def test_numbers_must_be_finite(tiny_server: Server, field: str, text: str) -> None:
    reply = tiny_server.post_raw("/completion", f'{{"prompt":"x","n_predict":1,"{field}":{text}}}'.encode())
    assert is_sound(reply, statuses=(400,))


@pytest.mark.parametrize(
    "field, value",
    [
        ("temperature", "hot"),
        ("temperature", [1]),
        ("temperature", True),
        ("top_k", 1.5),
        ("top_k", "40"),
        ("n_predict", "many"),
        ("n_predict", 2.5),
        ("seed", {}),
        ("stop", 5),
        ("stop", [5]),
        ("stream", "yes"),
        ("grammar", 5),
        ("grammar", ["root"]),
        ("samplers", 5),
        ("logit_bias", "x"),
        ("logit_bias", 5),
        ("ignore_eos", "maybe"),
        ("prompt", 5),
        ("prompt", {"a": 1}),
        ("prompt", True),
        ("prompt", [None]),
        ("prompt", [1.5]),
        ("prompt", [True]),
        ("dry_sequence_breakers", []),
        ("response_fields", 5),
    ],
)
def test_wrong_types_are_400_and_name_the_field(tiny_server: Server, field: str, value: Any) -> None:
    reply = tiny_server.post("/completion", {"prompt": "x", "n_predict": 1, field: value})
    assert is_sound(reply, statuses=(400,))
    param = reply.json()["error"]["param"]
    assert param is not None and param.split(".")[0] == field


@pytest.mark.parametrize(
    "messages",
    [
        "hi",
        [],
        [5],
        [{}],
        [{"content": "x"}],
        [{"role": 5, "content": "x"}],
        [{"role": "banana", "content": "x"}],
        [{"role": "user", "content": 5}],
        [{"role": "user", "content": [5]}],
        [{"role": "user", "content": [{"type": "text"}]}],
        [{"role": "user", "content": [{"type": "smell", "smell": "x"}]}],
        {"role": "user", "content": "x"},
    ],
)
def test_bad_messages_are_400_and_name_the_field(tiny_server: Server, messages: Any) -> None:
    reply = tiny_server.post(CHAT.path, {"messages": messages, "max_tokens": 1})
    assert is_sound(reply, statuses=(400,))
    assert (reply.json()["error"]["param"] or "").startswith("messages")


def test_missing_prompts_are_400(tiny_server: Server) -> None:
    for path in ("/completion", "/completions", "/v1/completions", CHAT.path):
        assert is_sound(tiny_server.post(path, {"max_tokens": 1}), statuses=(400,))
        assert is_sound(tiny_server.post(path, {"prompt": None, "messages": None, "max_tokens": 1}), statuses=(400,))


@pytest.mark.parametrize("limit", [0, 1, 2, 3])
def test_tiny_limits_are_exact(tiny_server: Server, limit: int) -> None:
    body = {"prompt": "x", "n_predict": limit, "ignore_eos": True, "return_tokens": True}
    reply = tiny_server.json("/completion", body)
    assert reply["tokens_predicted"] == limit == len(reply["tokens"])
    assert tiny_server.frames("/completion", body)[-1]["tokens_predicted"] == limit
    if limit == 0:
        assert reply["content"] == ""


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens", "n_predict"])
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
def test_limits_have_aliases(tiny_server: Server, dialect: Dialect, field: str) -> None:
    body = dialect.body("x", ignore_eos=True, **{field: 3})
    answer = dialect.read(tiny_server.json(dialect.path, body))
    assert answer.usage is not None and answer.usage[1] == 3


@pytest.mark.parametrize("dialect", [CHAT, COMPLETIONS], ids=lambda d: d.name)
def test_a_limit_of_zero_is_refused_or_gives_nothing(tiny_server: Server, dialect: Dialect) -> None:
    reply = tiny_server.post(dialect.path, dialect.body("x", max_tokens=0))
    assert is_sound(reply)
    if reply.status_code == 200:
        assert dialect.read(reply.json()).text == ""


@pytest.mark.parametrize(
    "key",
    [
        "chat_parser",
        "chat_format",
        "generation_prompt",
        "__class__",
        "__proto__",
        "internal",
        "produced",
        "id",
        "settings",
        "preserved_tokens",
        "grammar_triggers",
        "oaicompat",
        "constraint",
        "sampling",
        "prompt_tokens",
    ],
)
@pytest.mark.parametrize("junk", ["junk", -1, [["x"]], {"a": {"b": 1}}], ids=["text", "number", "list", "object"])
def test_internal_names_have_no_effect(tiny_server: Server, key: str, junk: Any) -> None:
    body = {"prompt": "x", "n_predict": 4, "temperature": 0, "cache_prompt": False}
    reply = tiny_server.post("/completion", {**body, key: junk})
    assert is_sound(reply)
    if reply.status_code == 200:
        assert reply.json()["content"] == tiny_server.json("/completion", body)["content"]


def test_an_empty_model_name_and_an_unknown_one_are_fine(tiny_server: Server) -> None:
    for model in ("", "gpt-4o", None, "x" * 1000):
        assert is_sound(tiny_server.post(CHAT.path, CHAT.body("x", model=model, max_tokens=1)), statuses=(200,))


def test_settings_tell_the_seed_that_was_used(tiny_server: Server) -> None:
    body = NATIVE.body("x", n_predict=12, temperature=1.5, cache_prompt=False)
    first = tiny_server.json("/completion", {**body, "seed": -1})
    seed = first["generation_settings"]["seed"]
    assert 0 <= seed < 2**32
    assert tiny_server.json("/completion", {**body, "seed": seed})["content"] == first["content"]
