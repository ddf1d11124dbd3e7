"""Text arrives whole: characters, stop strings and bytes that are no text at all."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.dialects import CHAT, COMPLETIONS, DIALECTS, NATIVE, Dialect, forced
from tests.e2e.server import Server
from tests.e2e.sse import DONE, join_text, text_of

HARD_TEXT = "a😀é漢👩\u200d👩\u200d👧b"
STOP_TEXT = "Alice! go TRE"


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_characters_are_never_split(tiny_server: Server, dialect: Dialect, temperature: float) -> None:
    fields: dict[str, Any] = {"grammar": forced(HARD_TEXT), "temperature": temperature, "seed": 7}
    whole = dialect.ask(tiny_server, "x", stream=False, **fields)
    frames = tiny_server.frames(dialect.path, dialect.body("x", **fields))
    assert whole.text == HARD_TEXT
    assert join_text(frames) == HARD_TEXT
    assert all("\ufffd" not in text_of(frame) for frame in frames)


def test_probabilities_carry_the_exact_bytes(tiny_server: Server) -> None:
    body = NATIVE.body("x", grammar=forced(HARD_TEXT), n_probs=5, temperature=0)
    whole = tiny_server.json("/completion", body)
    frames = tiny_server.frames("/completion", body)
    assert whole["content"] == join_text(frames) == HARD_TEXT
    assert all("\ufffd" not in text_of(frame) for frame in frames)
    streamed = [entry for frame in frames for entry in frame.get("completion_probabilities", ())]
    for entries in (whole["completion_probabilities"], streamed):
        assert b"".join(bytes(entry["bytes"]) for entry in entries) == HARD_TEXT.encode()
        assert len(entries) == whole["tokens_predicted"]
        assert all(len(entry["top_logprobs"]) == 5 for entry in entries)


def test_chat_probabilities_carry_the_exact_bytes(tiny_server: Server) -> None:
    body = CHAT.body("x", grammar=forced(HARD_TEXT), logprobs=True, top_logprobs=3, temperature=0)
    whole = tiny_server.json(CHAT.path, body)["choices"][0]["logprobs"]["content"]
    frames = tiny_server.frames(CHAT.path, body)
    streamed = [
        entry
        for frame in frames
        for choice in frame.get("choices", ())
        for entry in (choice.get("logprobs") or {"content": ()})["content"]
    ]
    for entries in (whole, streamed):
        assert b"".join(bytes(entry["bytes"]) for entry in entries) == HARD_TEXT.encode()


def test_random_bytes_are_still_valid_replies(tiny_server: Server) -> None:
    def generate(seed: int) -> str:
        stream = bool(seed % 2)
        body = NATIVE.body("x", temperature=1.5, top_k=0, top_p=1, min_p=0, seed=seed, n_predict=100, ignore_eos=True)
        if stream:
            frames = tiny_server.frames("/completion", body)
            assert frames[-1]["tokens_predicted"] == 100
            return join_text(frames)
        reply = tiny_server.post("/completion", body)
        assert reply.status_code == 200
        assert json.loads(reply.content.decode("utf-8", "strict"))["tokens_predicted"] == 100
        content: str = reply.json()["content"]
        return content

    with ThreadPoolExecutor(4) as pool:
        texts = list(pool.map(generate, range(50)))
    assert any("\ufffd" in text for text in texts), "the model should have produced bytes that are no text"
    tiny_server.assert_alive()


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
def test_streamed_and_whole_text_are_the_same_bytes(tiny_server: Server, dialect: Dialect) -> None:
    for seed in range(6):
        fields: dict[str, Any] = {"temperature": 1.5, "top_k": 0, "seed": seed, "limit": 40, "cache_prompt": False}
        whole = dialect.ask(tiny_server, "same", stream=False, **fields)
        streamed = dialect.ask(tiny_server, "same", stream=True, **fields)
        assert streamed.text == whole.text
        assert streamed.finish == whole.finish


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
@pytest.mark.parametrize(
    "stop",
    [["!"], ["Alice:"], ["TRE\nAAAA"], ["go TRE"], ["😀"], ["e! go T"], ["A"], ["zzz", "! g", "go"], ["TRE"], ["Alice! go TRE"]],
    ids=lambda stop: "+".join(stop).replace("\n", "_"),
)
def test_text_ends_before_a_stop_string(tiny_server: Server, dialect: Dialect, stop: list[str]) -> None:
    expected = cut(STOP_TEXT, stop)
    fields: dict[str, Any] = {"grammar": forced(STOP_TEXT), "temperature": 1.0, "stop": stop}
    for seed in range(3):
        whole = dialect.ask(tiny_server, "x", stream=False, seed=seed, **fields)
        streamed = dialect.ask(tiny_server, "x", stream=True, seed=seed, **fields)
        assert (whole.text, streamed.text) == (expected, expected)


def test_every_substring_can_be_a_stop_string(tiny_server: Server) -> None:
    text = "ab😀aab\n漢a😀"
    pieces = sorted({text[i:j] for i in range(len(text)) for j in range(i + 1, len(text) + 1)})

    def check(stop: str) -> None:
        seed = random.Random(stop).randrange(1000)
        body = NATIVE.body("x", grammar=forced(text), temperature=1.0, seed=seed, stop=[stop])
        reply = tiny_server.json("/completion", body)
        assert reply["content"] == join_text(tiny_server.frames("/completion", body)) == text.split(stop)[0]
        assert (reply["stop_type"], reply["stopping_word"]) == ("word", stop)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(check, pieces))


def test_a_stop_string_may_be_a_string_and_empty_ones_are_dropped(tiny_server: Server) -> None:
    for stop in ("!", ["", "!"], ["!", ""]):
        assert tiny_server.json("/completion", NATIVE.body("x", grammar=forced(STOP_TEXT), stop=stop))["content"] == "Alice"
    for none in ("", [], [""], None):
        assert tiny_server.json("/completion", NATIVE.body("x", grammar=forced(STOP_TEXT), stop=none))["content"] == STOP_TEXT


def test_openai_streams_end_with_done_and_native_ones_with_the_result(tiny_server: Server) -> None:
    for dialect in (COMPLETIONS, CHAT):
        assert tiny_server.frames(dialect.path, dialect.body("x", max_tokens=2))[-1] is DONE
    assert tiny_server.frames("/completion", NATIVE.body("x", n_predict=2))[-1]["stop"] is True


def cut(text: str, stops: list[str]) -> str:
    """The text before the earliest match of any stop string."""
    return text[: min((at for stop in stops if (at := text.find(stop)) >= 0), default=len(text))]
