"""`speculative.*`, flat and in an object, and what replies say of drafts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from puna.speculation import Speculation
from puna.types import Chunk, Timings
from tests.fakes import FakeEngine, FakeTokenizer, say
from tests.web import client

ROUTES: dict[str, dict[str, Any]] = {
    "/completion": {"prompt": "x"},
    "/infill": {"input_prefix": "x", "input_suffix": "y"},
    "/v1/completions": {"prompt": "x"},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "x"}]},
}


def an_engine() -> FakeEngine:
    return FakeEngine(tokenizer=FakeTokenizer(n_fim=3), script=lambda _number: say("answer"))


ASKED: list[tuple[dict[str, Any], Speculation]] = [
    ({}, Speculation()),
    ({"speculative": None, "speculative.type": None, "speculative.n_max": None}, Speculation()),
    ({"speculative.type": "ngram-simple"}, Speculation(type="ngram-simple")),
    ({"speculative.types": "ngram-simple,ngram-map-k4v"}, Speculation(type="ngram-map")),
    ({"speculative.type": "ngram-mod, draft-simple"}, Speculation(type="auto")),
    ({"speculative.types": "ngram-mod"}, Speculation(type="ngram-cache")),
    ({"speculative": {"type": "ngram-map-k", "n_max": 5}}, Speculation(type="ngram-map", n_max=5)),
    ({"speculative": {"types": "auto", "p_min": 0.5, "other": 1}}, Speculation(type="auto", p_min=0.5)),
    ({"speculative.n_max": 7, "speculative": {"n_max": 5, "n_min": 2}}, Speculation(n_max=7, n_min=2)),
    ({"speculative.n_max": 3, "speculative.n_min": 9}, Speculation(n_max=3, n_min=3)),
    ({"speculative.n_max": 0, "speculative.p_min": 1}, Speculation(n_max=0, p_min=1.0)),
]


@pytest.mark.parametrize("path", ROUTES)
async def test_what_is_asked_arrives(path: str) -> None:
    engine = an_engine()
    async with client(engine) as http:
        for fields, expected in ASKED:
            reply = await http.post(path, json={**ROUTES[path], **fields})
            assert reply.status_code == 200, reply.text
            assert engine.last.speculation == expected, fields


async def test_the_servers_defaults_count_where_a_request_does_not_say() -> None:
    engine = an_engine()
    async with client(engine, spec_type="ngram-cache", draft_max=9, draft_min=2, draft_p_min=0.25) as http:
        await http.post("/completion", json={"prompt": "x"})
        assert engine.last.speculation == Speculation(type="ngram-cache", n_max=9, n_min=2, p_min=0.25)
        reply = await http.post("/completion", json={"prompt": "x", "speculative.type": "none"})
        assert not engine.last.speculation.on
        assert reply.json()["generation_settings"]["speculative.types"] == "none"
        assert (await http.get("/slots")).json()[0]["speculative"] is True
        assert (await http.get("/props")).json()["default_generation_settings"]["params"]["speculative.n_max"] == 9


async def test_a_draft_model_can_be_asked_for_where_there_is_one() -> None:
    engine = an_engine()
    assert engine.facts is not None
    engine.facts = replace(engine.facts, draft_model="llama 1B Q8_0")
    async with client(engine, spec_type="draft") as http:
        for kind in ("draft", "draft-simple", None):
            reply = await http.post("/completion", json={"prompt": "x", "speculative.type": kind})
            assert reply.status_code == 200, reply.text
            assert engine.last.speculation.type == reply.json()["generation_settings"]["speculative.types"] == "draft"
        assert (await http.get("/props")).json()["draft_model"] == "llama 1B Q8_0"


def illegal() -> Iterator[tuple[str, dict[str, Any]]]:
    values: dict[str, tuple[Any, ...]] = {
        "n_max": ("1", 1.5, True, [1], -1, 1025),
        "n_min": ("1", 1.5, True, {}, -1, 1025),
        "p_min": ("1", True, [1], -0.1, 1.1, 1e39),
        "type": (5, ["none"], "mtp", ""),
        "types": (5, "none,auto", "eagle3", "draft,", ",", "auto,draft", "ngram-map," * 10_000),
    }
    for name, several in values.items():
        for value in several:
            yield f"speculative.{name}", {f"speculative.{name}": value}
            yield f"speculative.{name}", {"speculative": {name: value}}
    for value in (5, "none", [1], True):
        yield "speculative", {"speculative": value}
    for kind in ("draft", "draft-simple", "draft,draft-simple"):
        yield "speculative.type", {"speculative.type": kind}


@pytest.mark.parametrize("path", ROUTES)
async def test_each_illegal_value_is_a_400_that_names_the_field(path: str) -> None:
    engine = an_engine()
    async with client(engine) as http:
        for name, fields in illegal():
            reply = await http.post(path, content=json.dumps({**ROUTES[path], **fields}))
            assert reply.status_code == 400, (fields, reply.text)
            error = reply.json()["error"]
            assert (error["type"], error["param"]) == ("invalid_request_error", name), (fields, error)
            assert name in error["message"], (fields, error)
    assert engine.streams == []


@pytest.mark.parametrize("drafted", [0, 12])
async def test_timings_tell_of_drafts_where_there_were_some(drafted: int) -> None:
    figures = Timings(prompt_n=1, predicted_n=20, draft_n=drafted, draft_n_accepted=drafted // 2)
    engine = FakeEngine(script=lambda _number: [Chunk(text="x", tokens=(1,), stop_type="eos", timings=figures)])
    async with client(engine) as http:
        timings = (await http.post("/completion", json={"prompt": "x"})).json()["timings"]
    shown = {name: value for name, value in timings.items() if name.startswith("draft")}
    assert shown == ({"draft_n": 12, "draft_n_accepted": 6} if drafted else {})
