"""`/infill` as editors use it, and `suffix` on the older OpenAI route."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import msgspec
import pytest
from openai.types import Completion

from puna.config import ServerSettings
from puna.server.app import create_app
from puna.types import Chunk
from tests.fakes import FACTS, MID, PRE, SUF, FakeEngine, FakeTokenizer, say
from tests.unit.client.helpers import until
from tests.web import client, exchange, objects

BODY = {"input_prefix": "a\n", "prompt": "b", "input_suffix": "c"}

LLAMA_VIM = {
    "id_slot": 0,
    "input_prefix": "def f():\n",
    "input_suffix": "\n",
    "input_extra": [{"text": "x = 1\n", "filename": "a.py", "time": 12.5}],
    "prompt": "    ret",
    "n_predict": 128,
    "stop": [],
    "n_indent": 4,
    "top_k": 40,
    "top_p": 0.9,
    "samplers": ["top_k", "top_p", "infill"],
    "stream": False,
    "cache_prompt": True,
    "t_max_prompt_ms": 500,
    "t_max_predict_ms": 250,
    "response_fields": ["content", "timings/prompt_n", "timings/predicted_ms", "truncated", "tokens_cached"],
    "model": "",
}
WARM_UP = {
    **LLAMA_VIM,
    "input_prefix": "",
    "input_suffix": "",
    "prompt": "",
    "n_predict": 0,
    "temperature": 0.0,
    "samplers": [],
    "t_max_prompt_ms": 1,
    "t_max_predict_ms": 1,
    "response_fields": [""],
}


def engine(n_fim: int = 3, **fields: Any) -> FakeEngine:
    return FakeEngine(tokenizer=FakeTokenizer(n_fim=n_fim), **fields)


async def test_a_whole_reply() -> None:
    one = engine()
    async with client(one) as http:
        reply = (await http.post("/infill", json=BODY)).json()
    assert one.last.prompt == (PRE, *b"a\nb", SUF, *b"c", MID)
    assert (reply["content"], reply["stop_type"], reply["prompt"]) == ("Hello world", "eos", "<PRE>a\nb<SUF>c<MID>")
    assert reply["tokens_evaluated"] == 7


async def test_a_stream_and_several_answers() -> None:
    one = engine(script=lambda number: say(f"answer {number}"))
    async with client(one) as http:
        *_, last = objects((await http.post("/infill", json={**BODY, "stream": True})).text)
        several = (await http.post("/infill", json={**BODY, "n_cmpl": 3})).json()
    assert last["stop"] is True
    assert [(item["index"], item["content"]) for item in several] == [(i, f"answer {i + 1}") for i in range(3)]


async def test_what_vims_plugin_sends_and_how_it_reads_the_reply() -> None:
    one = engine(n_fim=5, script=lambda _: say('"quoted"'))
    async with client(one) as http:
        reply = await http.post("/infill", json=LLAMA_VIM)
        assert reply.status_code == 200
        # The plugin takes a body for an answer only if this matches, and reads one line.
        assert reply.text.startswith("{") and "\n" not in reply.text
        assert re.search(r'"content"\s*:"', reply.text)
        value = reply.json()
        assert value["content"] == '"quoted"'
        assert {"timings/prompt_n", "timings/predicted_ms", "truncated", "tokens_cached"} <= value.keys()
        generation = one.last
        assert (generation.n_indent, generation.t_max_predict_ms, generation.id_slot) == (4, 250, 0)
        assert generation.sampling.samplers == ("top_k", "top_p", "infill")
        warm = await http.post("/infill", json=WARM_UP)
        assert (warm.status_code, warm.text) == (200, "{}")
        assert one.last.max_tokens == 0 and one.last.sampling.samplers == ()
    # What the warm-up has read is how the next prompt begins.
    assert one.generations[0].prompt[: len(one.last.prompt) - 3] == one.last.prompt[:-3]


@pytest.mark.parametrize(
    "fields, param",
    [
        ({"input_prefix": None}, "input_prefix"),
        ({"input_suffix": None}, "input_suffix"),
        ({"input_prefix": 5}, "input_prefix"),
        ({"input_prefix": [1.5]}, "input_prefix.0"),
        ({"input_prefix": ["a", 999]}, "input_prefix.1"),
        ({"input_suffix": [[1], [2]]}, "input_suffix"),
        ({"input_suffix": {"prompt_string": "x"}}, "input_suffix"),
        ({"prompt": 5}, "prompt"),
        ({"prompt": ["x"]}, "prompt"),
        ({"input_extra": "x"}, "input_extra"),
        ({"input_extra": [{}]}, "input_extra.0.text"),
        ({"input_extra": [{"filename": "ok"}]}, "input_extra.0.text"),
        ({"input_extra": [{"filename": 123, "text": "abc"}]}, "input_extra.0.filename"),
        ({"input_extra": [{"text": "a"}, {"text": 456}]}, "input_extra.1.text"),
    ],
)
async def test_bad_bodies_name_the_field(fields: dict[str, Any], param: str) -> None:
    async with client(engine()) as http:
        reply = await http.post("/infill", json={**BODY, **fields})
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["param"] == param


async def test_empty_and_mixed_documents() -> None:
    one = engine()
    async with client(one) as http:
        for fields, prompt in (
            ({"input_prefix": "", "input_suffix": "", "prompt": None}, (PRE, SUF, MID)),
            ({"input_prefix": [], "input_suffix": [], "input_extra": []}, (PRE, 98, SUF, MID)),
            ({"input_prefix": ["a", 66, "c"], "prompt": "d"}, (PRE, *b"aBcd", SUF, 99, MID)),
            ({"input_prefix": ["a", "b"], "prompt": ""}, (PRE, *b"ab", SUF, 99, MID)),
        ):
            assert (await http.post("/infill", json={**BODY, **fields})).status_code == 200
            assert one.last.prompt == prompt


async def test_a_model_without_the_tokens() -> None:
    async with client(engine(n_fim=1)) as http:
        error = (await http.post("/infill", json=BODY)).json()["error"]
    assert (error["code"], error["type"]) == (501, "not_supported_error")
    assert "no suffix and no middle token" in error["message"]


async def test_long_inputs_are_cut_to_fit() -> None:
    one = engine(facts=msgspec.structs.replace(FACTS, n_ctx=512))
    async with client(one) as http:
        body = {**BODY, "input_prefix": "p" * 9000, "input_suffix": "s" * 9000, "input_extra": [{"text": "e" * 9000}]}
        assert (await http.post("/infill", json=body)).status_code == 200
    tokens = bytes(token for token in one.last.prompt if token < 256)
    assert (tokens.count(b"p"), tokens.count(b"s"), tokens.count(b"b")) == (287, 93, 1)


def app(one: FakeEngine) -> Any:
    return create_app(one, ServerSettings())


@pytest.mark.parametrize("stream", [False, True])
async def test_a_newer_request_of_the_same_slot_ends_a_running_one(stream: bool) -> None:
    one = engine(script=lambda number: [Chunk(text="so far", tokens=(1,)), 60.0] if not number else say("new"))
    web = app(one)
    async with exchange(web, "/infill", {**BODY, "id_slot": 5, "stream": stream}) as older:
        await until(lambda: bool(one.streams))
        await asyncio.sleep(0.01)
        async with exchange(web, "/infill", {**BODY, "id_slot": 5}) as newer:
            await older.until(lambda: older.complete)
            await newer.until(lambda: newer.complete)
    assert one.streams[0].closed and older.status == newer.status == 200
    text = b"".join(older.writes).decode()
    *_, last = objects(text) if stream else [msgspec.json.decode(text)]
    assert (last["stop"], last["stop_type"], last["tokens_predicted"]) == (True, "none", 1)
    assert last["content"] == ("" if stream else "so far") and "so far" in text
    assert msgspec.json.decode(b"".join(newer.writes))["content"] == "new"


async def test_one_that_waits_is_answered_empty() -> None:
    one = engine(script=lambda number: [60.0] if number < 2 else say("new"))
    web = app(one)
    async with exchange(web, "/infill", {**BODY, "id_slot": 0}) as first:
        await until(lambda: bool(one.streams))
        async with exchange(web, "/infill", {**BODY, "id_slot": 0}) as second:
            await first.until(lambda: first.complete)
            async with exchange(web, "/infill", {**BODY, "id_slot": 0}) as third:
                await second.until(lambda: second.complete)
                await third.until(lambda: third.complete)
    for answered in (first, second):
        reply = msgspec.json.decode(b"".join(answered.writes))
        assert (answered.status, reply["content"], reply["stop_type"]) == (200, "", "none")


@pytest.mark.parametrize("fields", [{"id_slot": 9}, {"id_slot": -1}, {}])
async def test_others_are_left_alone(fields: dict[str, Any]) -> None:
    one = engine(script=lambda number: [0.05, *say("old")] if not number else say("new"))
    web = app(one)
    # Slots 5 and 9 are the same one of four, but not the same request.
    older_fields = {"id_slot": 5} if "id_slot" in fields and fields["id_slot"] > 0 else fields
    async with exchange(web, "/infill", {**BODY, **older_fields}) as older:
        await until(lambda: bool(one.streams))
        async with exchange(web, "/infill", {**BODY, **fields}) as newer:
            await newer.until(lambda: newer.complete)
            await older.until(lambda: older.complete)
    assert msgspec.json.decode(b"".join(older.writes))["content"] == "old"


async def test_a_bad_newer_request_ends_nobody() -> None:
    one = engine(script=lambda number: [0.05, *say("old")])
    web = app(one)
    async with exchange(web, "/infill", {**BODY, "id_slot": 5}) as older:
        await until(lambda: bool(one.streams))
        for fields in ({"top_p": 7}, {"input_suffix": None}, {"lora": [{"id": 0, "scale": 1}]}):
            async with exchange(web, "/infill", {**BODY, "id_slot": 5, **fields}) as newer:
                await newer.until(lambda: newer.complete)
                assert newer.status == 400
        await older.until(lambda: older.complete)
    assert msgspec.json.decode(b"".join(older.writes))["content"] == "old"


# suffix


@pytest.mark.parametrize("stream", [False, True])
async def test_a_suffix_where_the_vocabulary_has_the_tokens(stream: bool) -> None:
    one = engine(n_fim=5)
    body = {"prompt": ["be<s>", [97, 98]], "suffix": "af", "echo": True, "stream": stream}
    async with client(one) as http:
        reply = await http.post("/v1/completions", json=body)
    assert [generation.prompt for generation in one.generations] == [
        (PRE, *b"be<s>", SUF, *b"af", MID),
        (PRE, *b"ab", SUF, *b"af", MID),
    ]
    assert joined(reply.text, stream) == {0: "be<s>Hello world", 1: "abHello world"}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_suffix_where_it_has_not(stream: bool) -> None:
    one = FakeEngine(script=lambda number: say(f"answer {number}", stop_type="limit"))
    body = {"prompt": "be", "suffix": " af", "n": 2, "stream": stream, "logprobs": 0}
    async with client(one) as http:
        reply = await http.post("/v1/completions", json=body)
    assert one.last.prompt == tuple(b"be")
    assert joined(reply.text, stream) == {0: "answer 0 af", 1: "answer 1 af"}


def joined(text: str, stream: bool) -> dict[int, str]:
    replies = objects(text) if stream else [msgspec.json.decode(text)]
    found: dict[int, str] = {}
    for reply in replies:
        if not stream:
            Completion.model_validate(reply, strict=True)
        for choice in reply["choices"]:
            assert choice["finish_reason"] is None or not stream or choice["text"] == ""
            found[choice["index"]] = found.get(choice["index"], "") + choice["text"]
    return found
