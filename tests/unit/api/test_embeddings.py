"""The routes that embed: every shape of input, every shape of output, and what is refused."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from puna.errors import QueueFull
from tests.fakes import FACTS, FakeEngine, FakeTokenizer
from tests.web import client

EMBEDS = replace(FACTS, pooling="mean", n_embd_out=4, n_ctx_pooled=12, has_decoder=False)
OPENAI, NATIVE = "/v1/embeddings", ("/embeddings", "/embedding")


def engine(**facts: Any) -> FakeEngine:
    return FakeEngine(facts=replace(EMBEDS, **facts))


async def send(path: str, body: dict[str, Any], of: FakeEngine | None = None, **settings: Any) -> Any:
    async with client(of or engine(), **settings) as http:
        return await http.post(path, json=body)


async def ok(path: str, body: dict[str, Any], of: FakeEngine | None = None, **settings: Any) -> Any:
    reply = await send(path, body, of, **settings)
    assert reply.status_code == 200, reply.text
    return reply.json()


def unit(n_tokens: int) -> Any:
    """The scaled vector of an input of so many tokens."""
    return pytest.approx([n_tokens / (n_tokens**2 + 1) ** 0.5, 1 / (n_tokens**2 + 1) ** 0.5, 0, 0], abs=1e-6)


async def test_openai_shape() -> None:
    reply = await ok(OPENAI, {"input": ["hello", "you"], "model": "x", "user": "u"})
    assert list(reply) == ["object", "data", "model", "usage"]
    assert reply["object"] == "list" and reply["model"] == "tiny-test"
    assert reply["usage"] == {"prompt_tokens": 8, "total_tokens": 8}
    assert reply["data"] == [
        {"object": "embedding", "index": 0, "embedding": unit(5)},
        {"object": "embedding", "index": 1, "embedding": unit(3)},
    ]


@pytest.mark.parametrize("path", NATIVE)
async def test_native_shape(path: str) -> None:
    for field in ("input", "content"):
        reply = await ok(path, {field: ["hello", "you"]})
        assert reply == [{"index": 0, "embedding": [unit(5)]}, {"index": 1, "embedding": [unit(3)]}]


async def test_content_gets_the_native_shape_everywhere() -> None:
    assert await ok(OPENAI, {"content": "you"}) == [{"index": 0, "embedding": [unit(3)]}]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("ab", [[97, 98]]),
        (["ab", "c"], [[97, 98], [99]]),
        ([1, 2], [[1, 2]]),
        ([[1, 2], [3]], [[1, 2], [3]]),
        ([[1, 2], "ab", [3, "c"]], [[1, 2], [97, 98], [3, 99]]),
        ([1, "ab"], [[1, 97, 98]]),
        ({"prompt_string": "a"}, [[97]]),
        ([{"text": "a"}, {"prompt_string": "b"}, {"content": "c"}], [[97], [98], [99]]),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, [[97, 98]]),
    ],
)
async def test_inputs_of_every_kind(given: Any, expected: list[list[int]]) -> None:
    used = engine()
    assert len((await ok(OPENAI, {"input": given}, used))["data"]) == len(expected)
    assert used.embedded == [expected]


async def test_texts_get_what_the_model_wants_around_them_and_ids_do_not() -> None:
    used = engine()
    used.tokenizer = FakeTokenizer(add_bos=True)
    await ok(OPENAI, {"input": ["a", [97]]}, used)
    assert used.embedded == [[[256, 97], [97]]]


@pytest.mark.parametrize("path", [OPENAI, *NATIVE])
async def test_base64_holds_the_same_numbers(path: str) -> None:
    body = {"input": ["hello", [1, 2]]}
    plain = await ok(path, {**body, "encoding_format": "float"})
    coded = await ok(path, {**body, "encoding_format": "base64"})
    if path == OPENAI:
        plain, coded = plain["data"], coded["data"]
        assert coded[0]["encoding_format"] == "base64"
    for one, other in zip(plain, coded, strict=True):
        texts = other["embedding"] if isinstance(other["embedding"], list) else [other["embedding"]]
        rows = one["embedding"] if isinstance(one["embedding"][0], list) else [one["embedding"]]
        for text, row in zip(texts, rows, strict=True):
            assert np.frombuffer(base64.b64decode(text), "<f4").tolist() == row


async def test_dimensions_and_scaling() -> None:
    async def vector(**more: Any) -> list[float]:
        found: list[float] = (await ok(OPENAI, {"input": "abc", **more}))["data"][0]["embedding"]
        return found

    assert await vector(dimensions=1) == [1.0]
    assert await vector(dimensions=4) == unit(3)
    assert await vector(embd_normalize=-1) == [3, 1, 0, 0] == await vector(normalize=False)
    assert await vector(embd_normalize=0) == [32760, 10920, 0, 0]
    assert await vector(embd_normalize=1) == [0.75, 0.25, 0, 0]
    assert await vector(embd_normalize=2, normalize=False) == unit(3) == await vector(normalize=True)
    assert await vector(embd_normalize=None, dimensions=None, encoding_format=None, truncate=None) == unit(3)
    assert (await ok(OPENAI, {"input": "abc"}, embd_normalize=1))["data"][0]["embedding"] == [0.75, 0.25, 0, 0]


async def test_without_pooling_every_token_has_a_vector() -> None:
    used = engine(pooling="none")
    used.vector = lambda tokens: [float(n) for token in tokens for n in (token, 0, 0, 1)]
    reply = await ok("/embedding", {"input": [[1, 2], [3]]}, used)
    assert reply == [{"index": 0, "embedding": [[1, 0, 0, 1], [2, 0, 0, 1]]}, {"index": 1, "embedding": [[3, 0, 0, 1]]}]
    scaled = await ok("/embedding", {"input": [[0, 0]], "embd_normalize": 2}, used)
    assert scaled[0]["embedding"] == [[0, 0, 0, 1]] * 2
    refused = await send(OPENAI, {"input": "a"}, used)
    assert refused.status_code == 400 and "/embeddings" in refused.json()["error"]["message"]


@pytest.mark.parametrize("path", [OPENAI, *NATIVE])
@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "input"),
        ({"input": None}, "input"),
        ({"input": ""}, "input.0"),
        ({"input": []}, "input"),
        ({"input": [""]}, "input.0"),
        ({"input": ["a", ""]}, "input.1"),
        ({"input": [[]]}, "input.0"),
        ({"input": ["a", []]}, "input.1"),
        ({"input": 5}, "input"),
        ({"input": [None]}, "input.0"),
        ({"input": [True]}, "input.0"),
        ({"input": [1.5]}, "input.0"),
        ({"input": [[-5]]}, "input.0.0"),
        ({"input": ["a", [1, 99999]]}, "input.1.1"),
        ({"input": [{"text": 5}]}, "input.0.text"),
        ({"input": {"content": [{"type": "text"}]}}, "input.content.0.text"),
        ({"input": "a", "encoding_format": "bogus"}, "encoding_format"),
        ({"input": "a", "encoding_format": 1}, "encoding_format"),
        ({"input": "a", "dimensions": 0}, "dimensions"),
        ({"input": "a", "dimensions": 5}, "dimensions"),
        ({"input": "a", "dimensions": "2"}, "dimensions"),
        ({"input": "a", "dimensions": 1.5}, "dimensions"),
        ({"input": "a", "embd_normalize": -2}, "embd_normalize"),
        ({"input": "a", "embd_normalize": True}, "embd_normalize"),
        ({"input": "a", "normalize": 1}, "normalize"),
    ],
)
async def test_what_is_wrong_is_named(path: str, body: dict[str, Any], param: str) -> None:
    used = engine()
    reply = await send(path, body, used)
    error = reply.json()["error"]
    assert reply.status_code == 400 and error["type"] == "invalid_request_error"
    assert error["param"] == param and error["message"]
    assert used.embedded == []


async def test_a_long_item_is_named_with_both_counts() -> None:
    used = engine()
    for inputs, index in ((["a" * 13], 0), (["a", "a" * 13, "a"], 1), (["a", "b", [7] * 13], 2)):
        reply = await send(OPENAI, {"input": inputs}, used)
        error = reply.json()["error"]
        assert reply.status_code == 400 and error["type"] == "exceed_context_size_error"
        assert (error["param"], error["n_prompt_tokens"], error["n_ctx"]) == (f"input.{index}", 13, 12)
        assert f"item {index}" in error["message"]
    assert used.embedded == []
    await ok(OPENAI, {"input": ["a" * 12, "abc" * 20], "truncate": True}, used)
    assert used.embedded == [[[97] * 12, [*b"abcabcabcab", 99]]]


async def test_images_are_refused_by_name() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    reply = await send(OPENAI, {"input": [{"content": [picture]}]})
    assert reply.status_code == 501 and reply.json()["error"]["param"] == "input.0.content.0"


async def test_more_numbers_than_a_reply_holds_are_refused() -> None:
    reply = await send("/embedding", {"input": ["abcd"] * 100}, engine(pooling="none", n_embd_out=1 << 20))
    assert reply.status_code == 400 and "numbers" in reply.json()["error"]["message"]


@pytest.mark.parametrize("path", [OPENAI, *NATIVE])
async def test_servers_that_do_not_embed_say_how_they_would(path: str) -> None:
    for facts, hint in ((FACTS, "--embeddings"), (replace(FACTS, pooling="rank", n_embd_out=1), "--pooling"),
                        (replace(FACTS, why_no_vectors="no head"), "no head")):  # fmt: skip
        reply = await send(path, {"input": "a"}, FakeEngine(facts=facts))
        error = reply.json()["error"]
        assert reply.status_code == 501 and error["type"] == "not_supported_error" and hint in error["message"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/completion", {"prompt": "a"}),
        ("/v1/completions", {"prompt": "a"}),
        ("/infill", {"input_prefix": "a", "input_suffix": "b"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
    ],
)
async def test_models_that_only_embed_do_not_generate(path: str, body: dict[str, Any]) -> None:
    reply = await send(path, body)
    assert reply.status_code == 501 and "does not generate text" in reply.json()["error"]["message"]


async def test_what_the_server_tells_of_itself() -> None:
    async with client(engine()) as http:
        props = (await http.get("/props")).json()
        assert (props["embeddings"], props["reranking"], props["pooling"], props["n_embd"]) == (True, False, "mean", 4)
        assert (await http.get("/v1/models")).json()["models"][0]["capabilities"] == ["embedding"]
    async with client(FakeEngine()) as http:
        assert (await http.get("/props")).json()["pooling"] is None
        assert (await http.get("/v1/models")).json()["models"][0]["capabilities"] == ["completion"]


async def test_failures_of_the_engine_are_replies() -> None:
    used = engine()
    used.vector = lambda _tokens: QueueFull("full", retry_after=4)
    reply = await send(OPENAI, {"input": "a"}, used)
    assert reply.status_code == 429 and reply.headers["retry-after"] == "4"
    used.vector = lambda _tokens: [float("nan"), 0, 0, 0]
    assert (await send(OPENAI, {"input": "a"}, used)).status_code == 500
