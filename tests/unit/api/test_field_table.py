"""One row for every generation field and alias: its default, a value that shows, and each illegal value with its error."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from puna.api.fields import ConstraintFields, GenerationFields
from puna.api.speculative import SpeculativeFields
from puna.types import DEFAULT_BREAKERS, DEFAULT_SAMPLERS, Chunk, Generation, Progress
from tests.fakes import FACTS, FakeEngine, FakeTokenizer, say
from tests.web import client, objects

ROUTES: dict[str, dict[str, Any]] = {
    "/completion": {"prompt": "x"},
    "/infill": {"input_prefix": "x", "input_suffix": "y"},
    "/v1/completions": {"prompt": "x"},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "x"}]},
}
BIG = 2**31
INT: tuple[Any, ...] = ("1", 1.5, True, [1], {}, BIG)
NUMBER: tuple[Any, ...] = ("1", True, [1], 1e39, 10**400)
FLAG: tuple[Any, ...] = ("yes", 1, [True])


@dataclass(frozen=True)
class Row:
    """A field that the engine sees."""

    name: str
    default: Any
    value: Any
    illegal: tuple[Any, ...]
    at: str = ""
    """Where it shows in a generation, by default under its own name among the sampling fields."""
    shown: Any = None
    """What it becomes, if that is not the value itself."""
    more: tuple[tuple[str, Any], ...] = ()
    """Other fields of the request that it needs."""

    @property
    def path(self) -> str:
        return self.at or f"sampling.{self.name}"

    @property
    def expected(self) -> Any:
        return self.value if self.shown is None else self.shown


ENGINE_ROWS = (
    Row("n_predict", -1, 3, (*INT, -2), "max_tokens"),
    Row("max_tokens", -1, 3, (*INT, -2), "max_tokens"),
    Row("max_completion_tokens", -1, 0, (*INT, -2), "max_tokens"),
    Row("min_tokens", 0, 5, (*INT, -1)),
    Row("temperature", 0.8, 0.25, NUMBER),
    Row("dynatemp_range", 0.0, 0.5, (*NUMBER, 1001, -1001)),
    Row("dynatemp_exponent", 1.0, 2.0, (*NUMBER, 1001)),
    Row("top_k", 40, 7, INT),
    Row("top_p", 0.95, 0.5, (*NUMBER, 1.01, -0.01)),
    Row("min_p", 0.05, 0.5, (*NUMBER, 1.01, -0.01)),
    Row("typical_p", 1.0, 0.5, (*NUMBER, 1.01, -0.01)),
    Row("top_n_sigma", -1.0, 1.5, NUMBER),
    Row("xtc_probability", 0.0, 0.5, (*NUMBER, 1.01, -0.01)),
    Row("xtc_threshold", 0.1, 0.2, (*NUMBER, 1.01, -0.01)),
    Row("repeat_last_n", 64, -1, (*INT, -2)),
    Row("penalty_last_n", 64, 9, (*INT, -2), "sampling.repeat_last_n"),
    Row("repeat_penalty", 1.0, 1.5, (*NUMBER, 0, -1)),
    Row("presence_penalty", 0.0, -0.5, (*NUMBER, 1001)),
    Row("frequency_penalty", 0.0, 0.5, (*NUMBER, 1001)),
    Row("dry_multiplier", 0.0, 0.8, (*NUMBER, 1001)),
    Row("dry_base", 1.75, 2.0, (*NUMBER, 1001)),
    Row("dry_allowed_length", 2, 4, (*INT, -1)),
    Row("dry_penalty_last_n", -1, 100, (*INT, -2)),
    Row("dry_sequence_breakers", DEFAULT_BREAKERS, ["x", ""], ("x", [], [1], [None]), shown=("x", "")),
    Row("mirostat", 0, 2, (*INT, 3, -1)),
    Row("mirostat_mode", 0, 1, (*INT, 3, -1), "sampling.mirostat"),
    Row("mirostat_tau", 5.0, 3.0, (*NUMBER, 1001)),
    Row("mirostat_eta", 0.1, 0.2, (*NUMBER, 1001)),
    Row("adaptive_target", -1.0, 0.5, (*NUMBER, 1.01)),
    Row("adaptive_decay", 0.9, 0.5, (*NUMBER, 1.0, -0.01)),
    Row("samplers", DEFAULT_SAMPLERS, ["top_k", "temp", "top_k"], (5, {}, "kq", ["nothing"], [1]),
        shown=("top_k", "temperature", "top_k")),
    Row("seed", None, 7, ("1", 1.5, True, [1], 2**32, -2)),
    Row("logit_bias", (), [[97, -1.5], [98, False]], (5, "x", [1], [[1]], [[999, 1]], [[97, None]], [[97, True]], {"97": "x"}),
        shown=((97, -1.5), (98, float("-inf")))),
    Row("logit_bias_type", (), "tokens", (5, "words"), "sampling.logit_bias", ((49, 2.0),), (("logit_bias", {"1": 2}),)),
    Row("ignore_eos", False, True, FLAG),
    Row("stop", (), ["a", "", "a", "b"], (5, {}, [5], ["x"] * 257), "stop", ("a", "b")),
    Row("stop_sequences", (), "a", (5, {}, [5]), "stop", ("a",)),
    Row("n_probs", 0, 5, ("1", 1.5, True, [1], -1, 1025)),
    Row("logprobs", 0, 5, ("1", 1.5, [1], -1, 1025), "sampling.n_probs"),
    Row("top_logprobs", 0, 3, ("1", 1.5, True, [1], -1, 1025), "sampling.n_probs", 3, (("logprobs", True),)),
    Row("post_sampling_probs", False, True, FLAG),
    Row("min_keep", 0, 4, (*INT, -1)),
    Row("deterministic", False, True, FLAG, "deterministic"),
    Row("cache_prompt", True, False, FLAG, "cache_prompt"),
    Row("n_cache_reuse", 0, 256, (*INT, -1), "n_cache_reuse"),
    Row("id_slot", -1, 6, (*INT, -2), "id_slot", 2),
    Row("n_keep", 0, -1, (*INT, -2), "n_keep"),
    Row("n_discard", 0, 9, (*INT, -1), "n_discard"),
    Row("n_indent", 0, 4, (*INT, -1), "n_indent"),
    Row("t_max_predict_ms", 0, 250, ("1", 1.5, True, [1], -2, 2**63), "t_max_predict_ms"),
    Row("return_progress", False, True, FLAG, "want_progress"),
)  # fmt: skip

REPLY_ROWS: dict[str, tuple[Any, ...]] = {
    "n_cmpl": (*("1", 1.5, True, [1]), 0, -1, 129),
    "n": (*("1", 1.5, True, [1]), 0, -1, 129),
    "best_of": (*("1", 1.5, True, [1]), 0, -1, 129),
    "return_tokens": FLAG,
    "timings_per_token": FLAG,
    "response_fields": (5, "content", [1], ["x"] * 257),
    "verbose": FLAG,
    "stream": FLAG,
    "stream_options": (5, [1], {"include_usage": 1}),
    "sse_ping_interval": ("1", True, -2, 1e39),
    "model": (5, ["x"]),
    "lora": (5, [5], [{"id": 0}], [{"id": -1, "scale": 1}], [{"id": 0, "scale": "x"}]),
}
"""Fields that show in the reply, or nowhere: what is illegal. Their effects have tests of their own below."""

ELSEWHERE = {*ConstraintFields.model_fields, *SpeculativeFields.model_fields}
"""Fields with tables of their own."""


def an_engine(script: Any = None) -> FakeEngine:
    return FakeEngine(tokenizer=FakeTokenizer(n_fim=3), script=script or (lambda number: say(f"answer\n{number}", probs=True)))


def test_every_field_has_a_row() -> None:
    rows = [*(row.name for row in ENGINE_ROWS), *REPLY_ROWS]
    assert len(rows) == len(set(rows))
    assert set(rows) == set(GenerationFields.model_fields) - ELSEWHERE


def at(generation: Generation, path: str) -> Any:
    value: Any = generation
    for name in path.split("."):
        value = getattr(value, name)
    return value


@pytest.mark.parametrize("row", ENGINE_ROWS, ids=lambda row: row.name)
async def test_fields_of_the_engine(row: Row) -> None:
    engine = an_engine()
    async with client(engine) as http:
        for path, body in ROUTES.items():
            for fields in ({}, {row.name: None}):
                assert (await http.post(path, json={**body, **fields})).status_code == 200
                if row.name != "seed":
                    assert at(engine.last, row.path) == row.default, path
            reply = await http.post(path, json={**body, **dict(row.more), row.name: row.value})
            assert reply.status_code == 200, reply.text
            assert at(engine.last, row.path) == row.expected, path


ILLEGAL = [(row.name, value) for row in ENGINE_ROWS for value in row.illegal]
ILLEGAL += [(name, value) for name, values in REPLY_ROWS.items() for value in values]


@pytest.mark.parametrize("path", ROUTES)
async def test_each_illegal_value_is_a_400_that_names_the_field(path: str) -> None:
    engine = an_engine()
    async with client(engine) as http:
        for name, value in ILLEGAL:
            reply = await http.post(path, content=json.dumps({**ROUTES[path], name: value}))
            assert reply.status_code == 400, (name, value, reply.text)
            error = reply.json()["error"]
            assert error["type"] == "invalid_request_error"
            assert error["param"].split(".")[0] == name, (name, value, error)
            assert name in error["message"], (name, value, error)
    assert engine.streams == []


SHOWN = {row.name for row in ENGINE_ROWS} - {
    *("penalty_last_n", "mirostat_mode", "max_completion_tokens", "logprobs", "top_logprobs", "stop_sequences"),
    *("logit_bias_type", "id_slot"),
}
"""Fields that the settings name as requests do: all but aliases, and what is told elsewhere."""


async def test_the_settings_tell_of_every_field() -> None:
    body: dict[str, Any] = {row.name: row.value for row in ENGINE_ROWS if row.name in SHOWN and not row.more}
    body |= {"n_cmpl": 2, "best_of": 2, "return_tokens": True, "timings_per_token": True, "max_tokens": 3}
    async with client(an_engine(), context_shift=True) as http:
        for path in ("/completion", "/infill"):
            (first, _) = (await http.post(path, json={**ROUTES[path], **body})).json()
            settings = first["generation_settings"]
            for name, value in body.items():
                expected = next((row.expected for row in ENGINE_ROWS if row.name == name), value)
                if name == "logit_bias":
                    assert [item["token"] for item in settings[name]] == [97, 98]
                else:
                    assert settings[name] == (list(expected) if isinstance(expected, tuple) else expected), name
            assert settings["context_shift"] is True


@pytest.mark.parametrize("path", ROUTES)
async def test_the_server_says_what_the_cache_is_for_requests_that_do_not(path: str) -> None:
    engine = an_engine()
    for fields, expected in (({}, (False, 64)), ({"cache_prompt": True, "n_cache_reuse": 0}, (True, 0))):
        await ask(path, fields, engine, cache_prompt=False, cache_reuse=64)
        assert (engine.last.cache_prompt, engine.last.n_cache_reuse) == expected


# fields that show in the reply


async def ask(path: str, fields: dict[str, Any], engine: FakeEngine | None = None, **settings: Any) -> Any:
    async with client(engine or an_engine(), **settings) as http:
        reply = await http.post(path, json={**ROUTES[path], **fields})
        assert reply.status_code == 200, reply.text
        return objects(reply.text) if fields.get("stream") else reply.json()


def texts(reply: Any) -> list[str]:
    if isinstance(reply, list):
        return [one["content"] for one in reply]
    if "choices" not in reply:
        return [reply["content"]]
    return [choice["text"] if "text" in choice else choice["message"]["content"] for choice in reply["choices"]]


@pytest.mark.parametrize("path", ROUTES)
async def test_several_answers(path: str) -> None:
    assert texts(await ask(path, {})) == ["answer\n0"]
    assert texts(await ask(path, {"n": 2})) == ["answer\n0", "answer\n1"]
    assert texts(await ask(path, {"n_cmpl": 3, "n": 2})) == [f"answer\n{number}" for number in range(3)]


@pytest.mark.parametrize("path", ROUTES)
async def test_the_best_of_several(path: str) -> None:
    engine = an_engine(lambda number: say("ab", probs=True, logprob=(-2.0, -0.5, -3.0, -1.0)[number % 4]))
    reply = await ask(path, {"best_of": 4, "n": 2, "seed": 10}, engine)
    assert {generation.sampling.n_probs for generation in engine.generations} == {1}
    if "choices" in reply:
        assert [choice["index"] for choice in reply["choices"]] == [0, 1]
        assert not any(choice.get("logprobs") for choice in reply["choices"])
        assert reply["usage"]["completion_tokens"] == 4
    else:
        assert [(one["index"], one["generation_settings"]["seed"]) for one in reply] == [(0, 11), (1, 13)]
        assert not any("completion_probabilities" in one for one in reply)
        assert [one["generation_settings"]["n_probs"] for one in reply] == [0, 0]
    async with client(engine) as http:
        error = (await http.post(path, json={**ROUTES[path], "best_of": 2, "stream": True})).json()["error"]
        assert (error["code"], error["param"]) == (400, "best_of")
        error = (await http.post(path, json={**ROUTES[path], "best_of": 2, "n": 3})).json()["error"]
        assert (error["code"], error["param"]) == (400, "best_of")
        assert (await http.post(path, json={**ROUTES[path], "best_of": 2, "n": 2, "stream": True})).status_code == 200


@pytest.mark.parametrize("path", ROUTES)
async def test_returned_tokens(path: str) -> None:
    def tokens(value: Any) -> list[int]:
        return list(value.get("tokens") or [token for choice in value.get("choices", []) for token in choice.get("tokens", [])])

    assert bytes(tokens(await ask(path, {"return_tokens": True}))) == b"answer\n0"
    assert tokens(await ask(path, {})) == []
    engine = an_engine(lambda _: say("a", "b", probs=True))
    frames = await ask(path, {"return_tokens": True, "stream": True}, engine)
    assert bytes(token for frame in frames for token in tokens(frame)) == b"ab"
    assert engine.every_token == [True]


@pytest.mark.parametrize("path", ROUTES)
async def test_timings_per_token(path: str) -> None:
    for wanted in (False, True):
        frames = await ask(path, {"timings_per_token": wanted, "stream": True}, an_engine(lambda _: say("Q", "Q")))
        pieces = [frame for frame in frames if '"Q"' in json.dumps(frame)]
        assert [("timings" in frame) for frame in pieces] == [wanted] * 2
    assert "timings" in await ask(path, {})


@pytest.mark.parametrize("path", ROUTES)
async def test_progress(path: str) -> None:
    reports = [Chunk(progress=Progress(total=10, cache=2, processed=n, time_ms=1.5)) for n in (6, 10)]
    engine = an_engine(lambda _: [*reports, *say("a")])
    assert (await ask(path, {"return_progress": True}, engine))["prompt_progress"]["processed"] == 10
    frames = await ask(path, {"return_progress": True, "stream": True}, engine)
    assert [frame["prompt_progress"]["processed"] for frame in frames if "prompt_progress" in frame] == [6, 10]
    assert "prompt_progress" not in await ask(path, {})


@pytest.mark.parametrize("path", ROUTES)
async def test_response_fields(path: str) -> None:
    fields = {"response_fields": ["timings/prompt_n", "nothing/else"]}
    assert await ask(path, fields) == {"timings/prompt_n": 4, "prompt_n": 4}
    assert await ask(path, {"response_fields": [""]}) == {}
    frames = await ask(path, {**fields, "stream": True})
    assert frames[-1] == {"timings/prompt_n": 4, "prompt_n": 4}


@pytest.mark.parametrize("path", ROUTES)
async def test_verbose(path: str) -> None:
    reply = await ask(path, {"verbose": True})
    assert "__verbose" not in await ask(path, {})
    if "choices" not in reply:
        assert len(reply["__verbose"]["prompt_tokens"]) == reply["tokens_evaluated"]
        return
    assert reply["__verbose"]["content"] == "answer\n0" and "generation_settings" in reply["__verbose"]
    both = (await ask(path, {"verbose": True, "n": 2}))["__verbose"]
    assert [one["content"] for one in both] == ["answer\n0", "answer\n1"]
    frames = await ask(path, {"verbose": True, "stream": True})
    (last,) = [frame for frame in frames if "__verbose" in frame]
    assert last["choices"][0]["finish_reason"] == "stop" and last["__verbose"]["stop_type"] == "eos"


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
async def test_usage_in_streams(path: str) -> None:
    for options, wanted in (({}, False), ({"include_usage": False}, False), ({"include_usage": True}, True)):
        frames = await ask(path, {"stream": True, "stream_options": options})
        assert ("usage" in frames[-1]) == wanted


@pytest.mark.parametrize("path", ROUTES)
async def test_signs_of_life(path: str) -> None:
    engine = an_engine(lambda _: [0.2, *say("a")])
    async with client(engine, sse_ping_after=0.01) as http:
        for interval, pings in ((0.01, True), (-1, False)):
            reply = await http.post(path, json={**ROUTES[path], "stream": True, "sse_ping_interval": interval})
            assert (": ping" in reply.text) == pings


@pytest.mark.parametrize("path", ROUTES)
async def test_known_and_refused(path: str) -> None:
    unified = FakeEngine(facts=msgspec.structs.replace(FACTS, layout="unified"), tokenizer=FakeTokenizer(n_fim=3))
    async with client(unified) as http:
        error = (await http.post(path, json={**ROUTES[path], "deterministic": True})).json()["error"]
        assert (error["code"], error["type"], error["param"]) == (501, "not_supported_error", "deterministic")
        assert "--layout split" in error["message"]


@pytest.mark.parametrize("path", ROUTES)
async def test_any_model_is_the_one_model(path: str) -> None:
    for model in ("", "gpt-4o"):
        assert (await ask(path, {"model": model}))["model"] == "tiny-test"
