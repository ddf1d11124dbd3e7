"""Adapters named by requests, and the scales for those that name none."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from puna.types import AdapterFacts
from tests.fakes import FACTS, FakeEngine, FakeTokenizer
from tests.web import client

ROUTES: dict[str, dict[str, Any]] = {
    "/completion": {"prompt": "x"},
    "/infill": {"input_prefix": "x", "input_suffix": "y"},
    "/v1/completions": {"prompt": "x"},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "x"}]},
}
ADAPTERS = (
    AdapterFacts(path="a.gguf", scale=1.0),
    AdapterFacts(path="b.gguf", scale=0.5, task_name="sums", prompt_prefix="Add: "),
    AdapterFacts(path="c.gguf", scale=0.0, invocation=(65, 258)),
)


def an_engine() -> FakeEngine:
    return FakeEngine(facts=msgspec.structs.replace(FACTS, adapters=ADAPTERS), tokenizer=FakeTokenizer(n_fim=3))


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize(
    "lora, given",
    [
        (None, ((0, 1.0), (1, 0.5))),
        ([], ((0, 1.0), (1, 0.5))),
        ([{"id": 1, "scale": 2}], ((1, 2.0),)),
        ([{"id": 2, "scale": -0.25}, {"id": 0, "scale": 1e3}], ((0, 1000.0), (2, -0.25))),
        ([{"id": 0, "scale": 0}], ()),
        ([{"id": 0, "scale": 1}, {"id": 0, "scale": 3}], ((0, 3.0),)),
    ],
)
async def test_the_set_of_a_request(path: str, lora: Any, given: Any) -> None:
    engine = an_engine()
    async with client(engine) as http:
        reply = await http.post(path, json={**ROUTES[path], "lora": lora, "n": 2, "verbose": True})
    assert reply.status_code == 200, reply.text
    assert [generation.lora for generation in engine.generations] == [given, given]
    if path == "/completion":
        shown = reply.json()[0]["generation_settings"]["lora"]
        assert shown == [{"id": id, "scale": scale} for id, scale in given]


@pytest.mark.parametrize("path", [*ROUTES, "/lora-adapters"])
@pytest.mark.parametrize(
    "lora, param",
    [
        (b'[{"id": 3, "scale": 1}]', "0.id"),
        (b'[{"id": 0, "scale": 1}, {"id": -1, "scale": 1}]', "1.id"),
        (b'[{"id": "0", "scale": 1}]', "0.id"),
        (b'[{"id": 0.5, "scale": 1}]', "0.id"),
        (b'[{"id": true, "scale": 1}]', "0.id"),
        (b'[{"id": 4294967296, "scale": 1}]', "0.id"),
        (b'[{"scale": 1}]', "0.id"),
        (b'[{"id": 0}]', "0.scale"),
        (b'[{"id": 0, "scale": "1"}]', "0.scale"),
        (b'[{"id": 0, "scale": true}]', "0.scale"),
        (b'[{"id": 0, "scale": null}]', "0.scale"),
        (b'[{"id": 0, "scale": 1e39}]', "0.scale"),
        (b'[{"id": 0, "scale": -1e999}]', "0.scale"),
        (b"[5]", "0"),
        (b"[null]", "0"),
        (b'{"id": 0, "scale": 1}', ""),
        (b"5", ""),
    ],
)
async def test_wrong_sets_are_refused_by_name(path: str, lora: bytes, param: str) -> None:
    engine = an_engine()
    async with client(engine) as http:
        body = lora if path not in ROUTES else msgspec.json.encode({**ROUTES[path], "lora": msgspec.Raw(lora)})
        reply = await http.post(path, content=body)
        error = reply.json()["error"]
        assert (reply.status_code, error["type"]) == (400, "invalid_request_error"), reply.text
        wanted = param if path not in ROUTES else ".".join(filter(None, ("lora", param)))
        assert (error["param"] or "") == wanted
        assert [adapter["scale"] for adapter in (await http.get("/lora-adapters")).json()] == [1.0, 0.5, 0.0]
    assert engine.streams == []


@pytest.mark.parametrize("body", [b"", b"[", b"[NaN]", b"nonsense", b'[{"id": 0, "scale": NaN}]', b"[" * 200])
async def test_what_is_no_list_of_scales(body: bytes) -> None:
    async with client(an_engine()) as http:
        assert (await http.post("/lora-adapters", content=body)).status_code == 400


async def test_without_adapters() -> None:
    async with client(FakeEngine()) as http:
        assert (await http.get("/lora-adapters")).json() == []
        assert (await http.post("/lora-adapters", json=[])).json() == {"success": True}
        refused = await http.post("/completion", json={"prompt": "x", "lora": [{"id": 0, "scale": 1}]})
        assert refused.status_code == 400
        assert "--lora" in refused.json()["error"]["message"]


async def test_adapters_are_listed() -> None:
    async with client(an_engine()) as http:
        assert (await http.get("/lora-adapters")).json() == [
            {"id": 0, "path": "a.gguf", "scale": 1.0, "task_name": "", "prompt_prefix": ""},
            {"id": 1, "path": "b.gguf", "scale": 0.5, "task_name": "sums", "prompt_prefix": "Add: "},
            {
                "id": 2,
                "path": "c.gguf",
                "scale": 0.0,
                "task_name": "",
                "prompt_prefix": "",
                "alora_invocation_string": "A<|im_start|>",
                "alora_invocation_tokens": [65, 258],
            },
        ]


async def test_scales_are_set_for_those_who_name_none() -> None:
    engine = an_engine()
    async with client(engine) as http:
        reply = await http.post("/lora-adapters", json=[{"id": 2, "scale": 0.75}])
        assert (reply.status_code, reply.json()) == (200, {"success": True})
        assert [adapter["scale"] for adapter in (await http.get("/lora-adapters")).json()] == [0.0, 0.0, 0.75]
        params = (await http.get("/props")).json()["default_generation_settings"]["params"]
        assert params["lora"] == [{"id": 2, "scale": 0.75}]
        await http.post("/completion", json={"prompt": "x"})
        assert engine.last.lora == ((2, 0.75),)
        await http.post("/completion", json={"prompt": "x", "lora": [{"id": 1, "scale": 1}]})
        assert engine.last.lora == ((1, 1.0),)
        engine.facts = msgspec.structs.replace(FACTS, adapters=ADAPTERS)  # those of another worker
        await http.post("/completion", json={"prompt": "x"})
        assert engine.last.lora == ((2, 0.75),)


async def test_while_the_model_loads_there_is_nothing_to_tell_or_to_set() -> None:
    async with client(FakeEngine(facts=None, state="loading")) as http:
        assert (await http.get("/lora-adapters")).status_code == 503
        assert (await http.post("/lora-adapters", json=[])).status_code == 503
