"""`echo` with `logprobs`: the prompt's own probabilities in the older route's four arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from puna.api.openai.legacy_logprobs import LegacyLogprobs
from puna.types import Chunk, TokenProb
from tests.fakes import BOS, FakeEngine, FakeTokenizer, Item, say
from tests.web import client, objects


def scored(prompt: bytes, *pieces: int) -> Iterator[Item]:
    """A script that reports probabilities of the prompt, in pieces of these lengths, and then says `yz`."""
    probs = [TokenProb(token, -float(at), ((token, -float(at)), (65, -9.0))) for at, token in enumerate(prompt)][1:]
    for length in pieces:
        yield Chunk(prompt_probs=tuple(probs[:length]))
        del probs[:length]
    yield Chunk(prompt_probs=tuple(probs))
    yield from say("y", "z", probs=True)


async def test_the_arrays_begin_with_the_prompt() -> None:
    engine = FakeEngine(script=lambda _: scored(b"ab\xc3\xa9d", 1, 2))
    body = {"prompt": "abéd", "echo": True, "logprobs": 1, "n": 2}
    async with client(engine) as http:
        whole = (await http.post("/v1/completions", json=body)).json()
        stream = objects((await http.post("/v1/completions", json={**body, "stream": True})).text)
    assert all(generation.prompt_probs and generation.sampling.n_probs == 1 for generation in engine.generations)
    for choice in whole["choices"]:
        assert choice["text"] == "abédyz"
        arrays = choice["logprobs"]
        assert arrays["tokens"] == ["a", "b", "bytes:\\xc3", "bytes:\\xa9", "d", "y", "z"]
        assert arrays["token_logprobs"] == [None, -1.0, -2.0, -3.0, -4.0, -0.5, -0.5]
        assert arrays["top_logprobs"][:2] == [None, {"b": -1.0}]
        assert arrays["text_offset"] == [0, 1, 2, 2, 3, 4, 5]
        mine = [c for frame in stream for c in frame["choices"] if c["index"] == choice["index"]]
        assert "".join(c["text"] for c in mine) == choice["text"] and mine[0]["text"] == "abéd"
        for name, values in arrays.items():
            assert [value for c in mine if c["logprobs"] for value in c["logprobs"][name]] == values


@pytest.mark.parametrize("stream", [False, True])
async def test_scoring_alone(stream: bool) -> None:
    engine = FakeEngine(script=lambda _: [*list(scored(b"abc"))[:-3], *say(stop_type="limit")])
    body = {"prompt": "abc", "echo": True, "logprobs": 0, "max_tokens": 0, "stream": stream}
    async with client(engine) as http:
        text = (await http.post("/v1/completions", json=body)).text
    replies = objects(text) if stream else [httpx.Response(200, text=text).json()]
    choice = replies[0]["choices"][0]
    assert engine.last.max_tokens == 0
    assert choice["text"] == "abc" and choice["logprobs"]["token_logprobs"] == [None, -1.0, -2.0]
    assert choice["logprobs"]["top_logprobs"] == [None, {}, {}]
    assert replies[-1]["choices"][0]["finish_reason"] == "length"


async def test_a_prompt_of_one_token_and_a_bos_that_nobody_wrote() -> None:
    engine = FakeEngine(tokenizer=FakeTokenizer(add_bos=True), script=lambda _: say("y", probs=True))
    async with client(engine) as http:
        for body in ({"prompt": ""}, {"prompt": "", "stream": True}):
            reply = await http.post("/v1/completions", json={**body, "echo": True, "logprobs": 1})
            choice = (objects(reply.text)[0] if "stream" in body else reply.json())["choices"][0]
            assert engine.last.prompt == (BOS,)
            assert choice["logprobs"]["tokens"][0] == "" and choice["logprobs"]["token_logprobs"][0] is None
            assert choice["text"] in ("", "y")


async def test_prompts_in_every_form_are_echoed_without_a_bos_that_nobody_wrote() -> None:
    engine = FakeEngine(tokenizer=FakeTokenizer(add_bos=True))
    async with client(engine) as http:
        for prompt, echo in (("ab", "ab"), ("<s>ab", "<s>ab"), ([BOS, 97], "<s>a"), (["a", 98], "ab"), ([97, "<s>"], "a<s>")):
            reply = (await http.post("/v1/completions", json={"prompt": prompt, "echo": True})).json()
            assert reply["choices"][0]["text"] == echo + "Hello world"


class Spaced(FakeTokenizer):
    """Puts a blank before every text, as some vocabularies do."""

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        return [32, *super().tokenize(text, add_special=add_special, parse_special=parse_special)]


def test_a_blank_that_the_vocabulary_put_first_is_not_shown() -> None:
    arrays = LegacyLogprobs(Spaced(), 1).echo([32, 97, 98], "ab", [TokenProb(97, -1.0), TokenProb(98, -2.0)])
    assert (arrays["tokens"], arrays["text_offset"]) == (["", "a", "b"], [0, 0, 1])
    arrays = LegacyLogprobs(Spaced(), 1).echo([32, 97], " a", [TokenProb(97, -1.0)])
    assert (arrays["tokens"], arrays["text_offset"]) == ([" ", "a"], [0, 1])


def test_probabilities_after_the_chain_are_shown_as_logarithms() -> None:
    arrays: dict[str, Any] = LegacyLogprobs(FakeTokenizer(), 2, post=True).feed([TokenProb(97, 0.5, ((97, 0.5), (98, 0.0)))])
    assert arrays["token_logprobs"] == [pytest.approx(math.log(0.5))]
    assert arrays["top_logprobs"][0]["a"] == pytest.approx(math.log(0.5)) and arrays["top_logprobs"][0]["b"] < -1e38
