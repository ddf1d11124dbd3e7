"""The native routes' replies."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from puna.types import Chunk, Constraint, Generation, Progress, Sampling, SlotState, SlotTask, TokenProb
from tests.fakes import FakeEngine, FakeTokenizer, say
from tests.web import client, objects, refuse_constant

FINAL = [
    "index",
    "content",
    "tokens",
    "id_slot",
    "stop",
    "model",
    "tokens_predicted",
    "tokens_evaluated",
    "generation_settings",
    "prompt",
    "has_new_line",
    "truncated",
    "stop_type",
    "stopping_word",
    "tokens_cached",
    "timings",
]


async def post(engine: FakeEngine, path: str, body: dict[str, Any], **settings: Any) -> Any:
    async with client(engine, **settings) as http:
        reply = await http.post(path, json=body)
        assert reply.status_code == 200, reply.text
        return json.loads(reply.text, parse_constant=refuse_constant)


@pytest.mark.parametrize("path", ["/completion", "/completions"])
async def test_a_whole_reply(path: str) -> None:
    engine = FakeEngine(script=lambda _: say("one\n", "two", stop_type="word", stopping_word="!"))
    reply = await post(engine, path, {"prompt": "hi", "seed": 5, "n_predict": 9, "stop": ["!"], "logit_bias": [[1, False]]})
    assert list(reply) == FINAL
    assert reply["content"] == "one\ntwo" and reply["tokens"] == [] and reply["has_new_line"] is True
    assert (reply["stop"], reply["stop_type"], reply["stopping_word"]) == (True, "word", "!")
    assert (reply["tokens_predicted"], reply["tokens_evaluated"], reply["tokens_cached"]) == (7, 2, 8)
    assert (reply["prompt"], reply["model"], reply["id_slot"], reply["truncated"]) == ("hi", "tiny-test", 0, False)
    settings = reply["generation_settings"]
    assert (settings["seed"], settings["n_predict"], settings["max_tokens"], settings["stop"]) == (5, 9, 9, ["!"])
    (bias,) = settings["logit_bias"]
    assert bias["token"] == 1 and bias["bias"] < -1e38
    timings = reply["timings"]
    assert (timings["cache_n"], timings["prompt_n"], timings["predicted_n"]) == (3, 4, 7)
    assert timings["predicted_per_second"] == 1750.0 and timings["prompt_per_token_ms"] == 0.5


async def test_replies_are_compact_and_one_line() -> None:
    async with client() as http:
        reply = await http.post("/completion", json={"prompt": "x"})
    assert reply.text.startswith('{"index":0,"content":"Hello world"') and "\n" not in reply.text


async def test_tokens_are_returned_when_asked_for() -> None:
    reply = await post(FakeEngine(), "/completion", {"prompt": "x", "return_tokens": True})
    assert bytes(reply["tokens"]) == b"Hello world"


async def test_a_stream_ends_with_the_final_object() -> None:
    engine = FakeEngine(script=lambda _: say("one\n", "two"))
    async with client(engine) as http:
        reply = await http.post("/completion", json={"prompt": "hi", "stream": True, "return_tokens": True})
    *parts, last = objects(reply.text)
    assert "[DONE]" not in reply.text
    assert [list(part) for part in parts] == [
        ["index", "content", "tokens", "stop", "id_slot", "tokens_predicted", "tokens_evaluated"]
    ] * 2
    assert [part["content"] for part in parts] == ["one\n", "two"]
    assert [part["tokens_predicted"] for part in parts] == [4, 7]
    assert all(part["stop"] is False for part in parts)
    assert list(last) == FINAL and last["stop"] is True and last["content"] == "" and last["tokens"] == []
    assert last["has_new_line"] is True


async def test_several_prompts_and_answers_are_a_list_in_order() -> None:
    engine = FakeEngine(script=lambda number: say(f"answer {number}", pause=0.002 * (3 - number)))
    reply = await post(engine, "/completion", {"prompt": ["a", [98]], "n_cmpl": 2, "seed": 7})
    assert [(item["index"], item["content"], item["prompt"]) for item in reply] == [
        (0, "answer 0", "a"),
        (1, "answer 1", "a"),
        (2, "answer 2", "b"),
        (3, "answer 3", "b"),
    ]
    assert [item["generation_settings"]["seed"] for item in reply] == [7, 8, 7, 8]
    assert isinstance(await post(FakeEngine(), "/completion", {"prompt": ["a"]}), dict)


async def test_streams_of_several_answers_carry_their_index() -> None:
    engine = FakeEngine(script=lambda number: say("ab"[number]))
    async with client(engine) as http:
        reply = await http.post("/completion", json={"prompt": "x", "n": 2, "stream": True})
    seen = [(item["index"], item["content"]) for item in objects(reply.text) if not item["stop"]]
    assert sorted(seen) == [(0, "a"), (1, "b")]
    assert sorted(item["index"] for item in objects(reply.text) if item["stop"]) == [0, 1]


async def test_chosen_fields() -> None:
    fields = ["content", "timings/prompt_n", "generation_settings/n_predict", "nothing", "timings/nothing", "content/x", ""]
    reply = await post(FakeEngine(), "/completion", {"prompt": "x", "n_predict": 4, "response_fields": fields})
    assert reply == {
        "content": "Hello world",
        "timings/prompt_n": 4,
        "prompt_n": 4,
        "generation_settings/n_predict": 4,
        "n_predict": 4,
    }
    assert await post(FakeEngine(), "/completion", {"prompt": "x", "response_fields": [""]}) == {}
    assert "timings" in await post(FakeEngine(), "/completion", {"prompt": "x", "response_fields": []})


@pytest.mark.parametrize("post_sampling", [False, True])
async def test_probabilities(post_sampling: bool) -> None:
    probs = (TokenProb(0xC3, -0.25, ((0xC3, -0.25), (0x61, float("-inf")), (0x62, -3.0))), TokenProb(0xA9, float("-inf")))
    engine = FakeEngine(script=lambda _: [Chunk(text="é", tokens=(0xC3, 0xA9), probs=probs), *say(stop_type="limit")])
    body = {"prompt": "x", "n_probs": 2, "post_sampling_probs": post_sampling}
    first, second = (await post(engine, "/completion", body))["completion_probabilities"]
    value, top = ("prob", "top_probs") if post_sampling else ("logprob", "top_logprobs")
    assert list(first) == ["id", "token", "bytes", value, top]
    assert (first["id"], first["token"], first["bytes"], first[value]) == (0xC3, "\ufffd", [0xC3], -0.25)
    assert [rival["id"] for rival in first[top]] == [0xC3, 0x61]
    assert first[top][1][value] < -1e38 and second[value] < -1e38 and second[top] == []
    assert bytes(first["bytes"] + second["bytes"]).decode() == "é"
    assert engine.last.sampling.n_probs == 2
    async with client(engine) as http:
        reply = await http.post("/completion", json={**body, "stream": True})
    part, last = objects(reply.text)
    assert len(part["completion_probabilities"]) == 2 and "completion_probabilities" not in last
    assert engine.every_token == [False, True]


async def test_probabilities_by_their_other_name() -> None:
    engine = FakeEngine()
    for value, n_probs in ((3, 3), (True, 1), (False, 0), (None, 0)):
        await post(engine, "/completion", {"prompt": "x", "logprobs": value})
        assert engine.last.sampling.n_probs == n_probs


async def test_progress_and_timings_in_streams() -> None:
    progress = Progress(total=10, cache=2, processed=6, time_ms=1.5)
    engine = FakeEngine(script=lambda _: [Chunk(progress=progress), *say("a")])
    async with client(engine) as http:
        body = {"prompt": "x", "stream": True, "return_progress": True, "timings_per_token": True}
        report, part, _ = objects((await http.post("/completion", json=body)).text)
    assert report["prompt_progress"] == {"total": 10, "cache": 2, "processed": 6, "time_ms": 1.5}
    assert report["content"] == "" and "timings" in part
    assert engine.last.want_progress and engine.every_token == [True]


async def test_tokenize() -> None:
    engine = FakeEngine(tokenizer=FakeTokenizer(add_bos=True))
    assert await post(engine, "/tokenize", {"content": "<s>é"}) == {"tokens": [256, 0xC3, 0xA9]}
    assert await post(engine, "/tokenize", {"content": "a", "add_special": True}) == {"tokens": [256, 97]}
    assert len((await post(engine, "/tokenize", {"content": "<s>", "parse_special": False}))["tokens"]) == 3
    assert await post(engine, "/tokenize", {"content": ["a", 98, "c"]}) == {"tokens": [97, 98, 99]}
    assert await post(engine, "/tokenize", {"content": ""}) == {"tokens": []}
    assert await post(engine, "/tokenize", {}) == {"tokens": []}
    pieces = (await post(engine, "/tokenize", {"content": "<s>é", "with_pieces": True}))["tokens"]
    assert pieces == [{"id": 256, "piece": "<s>"}, {"id": 0xC3, "piece": [0xC3]}, {"id": 0xA9, "piece": [0xA9]}]


async def test_detokenize() -> None:
    assert await post(FakeEngine(), "/detokenize", {"tokens": [97, 256, 0xFF]}) == {"content": "a<s>\ufffd"}
    assert await post(FakeEngine(), "/detokenize", {}) == {"content": ""}
    long = [97] * 40_000
    assert await post(FakeEngine(), "/detokenize", {"tokens": long}) == {"content": "a" * 40_000}


@pytest.mark.parametrize(
    "path, body, param",
    [
        ("/tokenize", {"content": 5}, "content"),
        ("/tokenize", {"content": [1.5]}, "content.0"),
        ("/tokenize", {"content": [1, -1]}, "content.1"),
        ("/tokenize", {"content": "a", "with_pieces": "x"}, "with_pieces"),
        ("/detokenize", {"tokens": [-1]}, "tokens.0"),
        ("/detokenize", {"tokens": [1, 2**70]}, "tokens.1"),
        ("/detokenize", {"tokens": ["x"]}, "tokens.0"),
        ("/detokenize", {"tokens": "x"}, "tokens"),
        ("/completion", {}, "prompt"),
        ("/completion", {"prompt": None}, "prompt"),
        ("/completion", {"prompt": ["a", [1, 999]]}, "prompt.1.1"),
        ("/apply-template", {}, "messages"),
        ("/apply-template", {"messages": []}, "messages"),
    ],
)
async def test_bad_bodies_name_the_field(path: str, body: dict[str, Any], param: str) -> None:
    async with client() as http:
        reply = await http.post(path, json=body)
    assert reply.status_code == 400 and reply.json()["error"]["param"] == param


async def test_apply_template_shows_tools_to_the_template() -> None:
    template = "{% for t in tools %}{{ t.function.name }} {% endfor %}{{ messages[0].content }}"
    body = {"messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function", "function": {"name": "f"}}]}
    assert await post(FakeEngine(), "/apply-template", body, chat_template=template) == {"prompt": "f hi"}


async def test_props() -> None:
    async with client(sampling_defaults={"temperature": 0.5, "seed": 3.0}, n_predict=6) as http:
        props = (await http.get("/props")).json()
    assert props["total_slots"] == 4 and props["model_path"] == "/models/tiny-test.gguf"
    defaults = props["default_generation_settings"]
    assert defaults["n_ctx"] == 1024
    assert (defaults["params"]["temperature"], defaults["params"]["seed"], defaults["params"]["n_predict"]) == (0.5, 3, 6)
    assert "<|im_start|>" in props["chat_template"] and props["chat_template_caps"]["supports_system_role"] is True
    assert (props["bos_token"], props["eos_token"]) == ("<s>", "</s>")
    assert props["modalities"] == {"vision": False, "video": False, "audio": False}
    assert props["build_info"].startswith("puna-")


@pytest.mark.parametrize(
    ("kind", "source"),
    [("gbnf", 'root ::= "secret"'), ("json_schema", '{"const": "secret"}'), ("regex", "secret"), ("choice", '["secret"]')],
)
async def test_slots(kind: Literal["gbnf", "json_schema", "regex", "choice"], source: str) -> None:
    busy = SlotState(id=0, busy=True, request=5, n_prompt=10, n_prompt_done=7, n_cached=3, n_decoded=2)
    engine = FakeEngine(slots=(busy, SlotState(id=1)))
    asked = Generation(
        prompt=tuple(b"secret"),
        max_tokens=5,
        sampling=Sampling(temperature=0.25, seed=7, dry_sequence_breakers=("secret",)),
        stop=("secret",),
        constraint=Constraint(kind, source),
    )
    engine.tasks[0] = SlotTask(generation=asked, produced=tuple(b"a\n"))
    async with client(engine) as http:
        first, second = (await http.get("/slots")).json()
        assert first["is_processing"] is True and first["id_task"] == 5 and first["n_ctx"] == 1024
        assert (first["n_prompt_tokens"], first["n_prompt_tokens_processed"], first["n_prompt_tokens_cache"]) == (10, 4, 3)
        assert first["next_token"] == [{"has_next_token": True, "has_new_line": True, "n_remain": 3, "n_decoded": 2}]
        assert (first["params"]["temperature"], first["params"]["seed"], first["params"]["n_predict"]) == (0.25, 7, 5)
        assert "secret" not in str(first)
        assert second == {"id": 1, "n_ctx": 1024, "speculative": False, "is_processing": False}
        assert (await http.get("/slots?fail_on_no_slot=1")).status_code == 200
        engine.slots = (busy,)
        assert (await http.get("/slots?fail_on_no_slot=1")).status_code == 503
        assert (await http.get("/slots")).status_code == 200
    async with client(engine, slots_endpoint=False) as http:
        assert (await http.get("/slots")).status_code == 501
    async with client(engine, slots_prompts=True) as http:
        (first,) = (await http.get("/slots")).json()
        assert (first["prompt"], first["generated"]) == ("secret", "a\n")


async def test_props_with_a_template_that_cannot_be_used() -> None:
    async with client(chat_template="{% if %}") as http:
        props = (await http.get("/props")).json()
        assert props["chat_template"] == "{% if %}" and props["chat_template_caps"] == {}
        reply = await http.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "x"}]})
        assert reply.status_code == 501
        assert (await http.post("/completion", json={"prompt": "x"})).status_code == 200
