"""Probabilities of tokens in the three shapes: one entry a token, finite, whose bytes are the text."""

from __future__ import annotations

import json
import math
from typing import Any

import openai
import pytest

from tests.e2e.dialects import CHAT, COMPLETIONS, DIALECTS, NATIVE, Dialect, forced
from tests.e2e.server import Server
from tests.e2e.sse import DONE

ENTRIES: dict[str, dict[str, Any]] = {
    "plain": {"temperature": 0, "ignore_eos": True, "limit": 8},
    "hot": {"temperature": 1.5, "seed": 1, "ignore_eos": True, "limit": 8},
    "one candidate": {"temperature": 1, "top_k": 1, "ignore_eos": True, "limit": 3},
    "grammar": {"grammar": forced("a😀é漢b\nis"), "limit": 30},
    "held back": {"grammar": forced("Alice! go TRE"), "stop": ["Alice:", "TRE\nA"], "limit": 40},
    "grammar and heat": {"grammar": 'root ::= ([a-z]+ " ")+', "temperature": 2, "limit": 12},
}


class Entry:
    """One token's probability, whatever shape it came in."""

    def __init__(self, data: bytes, value: float, tops: list[float]) -> None:
        self.data, self.value, self.tops = data, value, tops


def read(text: str) -> Any:
    """JSON without what JSON cannot say."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def from_shape(dialect: Dialect, shape: Any) -> list[Entry]:
    if dialect is COMPLETIONS:
        arrays = zip(shape["tokens"], shape["token_logprobs"], shape["top_logprobs"], strict=True)
        return [Entry(named(token), value, list(tops.values())) for token, value, tops in arrays]
    entries = shape if dialect is NATIVE else shape["content"]
    return [
        Entry(bytes(entry["bytes"]), entry["logprob"], [rival["logprob"] for rival in entry["top_logprobs"]]) for entry in entries
    ]


def named(token: str) -> bytes:
    """The bytes that the older route's name of a token stands for."""
    if token.startswith("bytes:"):
        return bytes(int(part, 16) for part in token.removeprefix("bytes:\\x").split("\\x"))
    return token.encode()


def whole(server: Server, dialect: Dialect, body: dict[str, Any]) -> tuple[str, list[Entry], int]:
    """Text, entries, and the number of tokens."""
    reply = read(server.post(dialect.path, body).text)
    if dialect is NATIVE:
        return reply["content"], from_shape(dialect, reply["completion_probabilities"]), reply["tokens_predicted"]
    (choice,) = reply["choices"]
    text = choice["text"] if dialect is COMPLETIONS else choice["message"]["content"]
    return text, from_shape(dialect, choice["logprobs"]), reply["usage"]["completion_tokens"]


def streamed(server: Server, dialect: Dialect, body: dict[str, Any]) -> list[Entry]:
    entries: list[Entry] = []
    for frame in server.frames(dialect.path, body):
        if frame is DONE:
            continue
        if dialect is NATIVE:
            entries += from_shape(dialect, frame.get("completion_probabilities", []))
        else:
            for choice in frame["choices"]:
                entries += from_shape(dialect, choice["logprobs"]) if choice.get("logprobs") else []
    return entries


def asking(dialect: Dialect) -> dict[str, Any]:
    """How each dialect asks for five rivals."""
    if dialect is NATIVE:
        return {"n_probs": 5}
    return {"logprobs": 5} if dialect is COMPLETIONS else {"logprobs": True, "top_logprobs": 5}


@pytest.mark.parametrize("case", ENTRIES)
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
def test_one_finite_entry_for_every_token(tiny_server: Server, dialect: Dialect, case: str) -> None:
    body = dialect.body("the water", **asking(dialect), **ENTRIES[case])
    text, entries, n_tokens = whole(tiny_server, dialect, body)
    assert len(entries) == n_tokens > 0
    assert b"".join(entry.data for entry in entries).decode("utf-8", "replace") == text
    for entry in entries:
        assert math.isfinite(entry.value) and entry.value <= 0
        assert 0 < len(entry.tops) <= 5 and all(math.isfinite(value) for value in entry.tops)
        assert sum(map(math.exp, entry.tops)) <= 1.001
        assert entry.tops == sorted(entry.tops, reverse=True)
    if case == "plain":
        assert [entry.value for entry in entries] == pytest.approx([entry.tops[0] for entry in entries])
    again = streamed(tiny_server, dialect, body)
    assert len(again) == len(entries) or case in ("hot", "grammar and heat")
    if case in ("grammar", "held back"):
        assert [entry.data for entry in again] == [entry.data for entry in entries]


def test_every_token_up_to_a_stop_string_has_an_entry(tiny_server: Server) -> None:
    for dialect in DIALECTS:
        body = dialect.body("x", grammar=forced("hello the END water"), stop=["END"], limit=40, **asking(dialect))
        text, entries, n_tokens = whole(tiny_server, dialect, body)
        assert text == "hello the " and len(entries) == n_tokens
        assert b"".join(entry.data for entry in entries).startswith(b"hello the END")


def test_probabilities_after_the_chain(tiny_server: Server) -> None:
    body = {
        "prompt": "x",
        "n_predict": 5,
        "ignore_eos": True,
        "n_probs": 9,
        "post_sampling_probs": True,
        "top_k": 4,
        "top_p": 1,
        "min_p": 0,
    }
    for entry in tiny_server.json("/completion", body)["completion_probabilities"]:
        assert len(entry["top_probs"]) == 4
        assert sum(rival["prob"] for rival in entry["top_probs"]) == pytest.approx(1)
        assert entry["prob"] in [rival["prob"] for rival in entry["top_probs"]]
    arrays = tiny_server.json(COMPLETIONS.path, {**body, "logprobs": 9})["choices"][0]["logprobs"]
    assert all(value <= 0 for value in arrays["token_logprobs"])


def test_the_shapes_agree(tiny_server: Server) -> None:
    prompt = tiny_server.json("/apply-template", CHAT.body("hi"))["prompt"]
    values = []
    for dialect in DIALECTS:
        body = dialect.body(
            "hi" if dialect is CHAT else prompt, temperature=0, ignore_eos=True, limit=6, cache_prompt=False, **asking(dialect)
        )
        values.append([entry.value for entry in whole(tiny_server, dialect, body)[1]])
    assert values[0] == pytest.approx(values[1], abs=1e-3) and values[1] == pytest.approx(values[2], abs=1e-3)


def test_an_echoed_prompt_has_its_own(tiny_server: Server) -> None:
    prompt = "the water about people"
    body = {"prompt": prompt, "echo": True, "logprobs": 2, "max_tokens": 3, "temperature": 0, "ignore_eos": True}
    reply = read(tiny_server.post(COMPLETIONS.path, body).text)
    (choice,) = reply["choices"]
    arrays = choice["logprobs"]
    n = reply["usage"]["prompt_tokens"]
    assert len(arrays["tokens"]) == n + 3 and {len(values) for values in arrays.values()} == {n + 3}
    assert b"".join(map(named, arrays["tokens"])).decode("utf-8", "replace") == choice["text"]
    assert arrays["token_logprobs"][0] is None and arrays["top_logprobs"][0] is None
    assert all(math.isfinite(value) and value <= 0 for value in arrays["token_logprobs"][1:])
    assert arrays["text_offset"] == sorted(arrays["text_offset"])
    # Each prefix of the prompt, continued with its next token, tells the same.
    tokens = tiny_server.json("/tokenize", {"content": prompt, "add_special": True})["tokens"]
    for at in (2, n - 1):
        one = {"prompt": tokens[:at], "logprobs": 0, "max_tokens": 1, "logit_bias": {str(tokens[at]): 1000}, "temperature": 0}
        alone = tiny_server.json(COMPLETIONS.path, one)["choices"][0]["logprobs"]
        assert alone["token_logprobs"][0] == pytest.approx(arrays["token_logprobs"][at], abs=0.3)
    frames = [frame for frame in tiny_server.frames(COMPLETIONS.path, body) if frame is not DONE]
    parts = [c["logprobs"] for frame in frames for c in frame["choices"] if c["logprobs"]]
    assert [token for part in parts for token in part["tokens"]] == arrays["tokens"]
    assert "".join(c["text"] for frame in frames for c in frame["choices"]) == choice["text"]


def test_a_text_is_scored_without_an_answer(tiny_server: Server) -> None:
    body = {"prompt": ["the water", [5, 6, 7]], "echo": True, "logprobs": 0, "max_tokens": 0}
    reply = tiny_server.json(COMPLETIONS.path, body)
    assert [len(choice["logprobs"]["tokens"]) for choice in reply["choices"]] == [len(n) for n in _tokens(tiny_server)]
    assert reply["usage"]["completion_tokens"] == 0
    assert [choice["finish_reason"] for choice in reply["choices"]] == ["length"] * 2


def _tokens(server: Server) -> list[list[int]]:
    return [server.json("/tokenize", {"content": "the water", "add_special": True})["tokens"], [5, 6, 7]]


def test_openais_client_reads_all_of_it(tiny_server: Server) -> None:
    client = openai.OpenAI(api_key="x", base_url=f"{tiny_server.url}/v1", max_retries=0)
    extras = {"best_of": 3, "n_indent": 2, "return_tokens": True, "verbose": True, "deterministic": True}
    text = client.completions.create(model="m", prompt="a", echo=True, logprobs=2, max_tokens=3, n=2)
    assert [len(choice.logprobs.tokens or []) for choice in text.choices if choice.logprobs] == [5, 5]
    text = client.completions.create(model="m", prompt="a", suffix="b", max_tokens=3, extra_body=extras)
    assert text.choices[0].finish_reason in ("stop", "length")
    pieces = list(client.completions.create(model="m", prompt="a", echo=True, logprobs=2, max_tokens=3, stream=True))
    assert pieces[-1].choices[0].finish_reason is not None
    turn: Any = [{"role": "user", "content": "a"}]
    chat = client.chat.completions.create(
        model="m", messages=turn, logprobs=True, top_logprobs=2, max_tokens=3, extra_body=extras
    )
    assert chat.choices[0].logprobs is not None
    forced_text = {"grammar": forced("yes")}
    with client.chat.completions.stream(model="m", messages=turn, logprobs=True, extra_body=forced_text) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].logprobs is not None and final.choices[0].logprobs.content
    client.close()
