"""What a caller can ask of a generation, as it comes out of a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.dialects import CHAT, COMPLETIONS, DIALECTS, NATIVE, Dialect, forced
from tests.e2e.server import Server
from tests.e2e.sse import DONE

N_CTX = 256


@pytest.fixture(scope="module")
def shifting_server(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Two slots of 256 tokens whose answers may outgrow them."""
    log = tmp_path_factory.mktemp("server") / "log"
    with Server(tiny_llama, "-c", str(N_CTX), "-np", "2", "-t", "1", "--context-shift", "--keep", "3", log=log) as server:
        yield server
        server.stop()


def hot(**fields: Any) -> dict[str, Any]:
    """Sampling that a seed decides."""
    return {"temperature": 1.5, "top_k": 0, "top_p": 1, "min_p": 0, "ignore_eos": True, **fields}


# ends


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_line_that_is_indented_too_little_ends_the_text(tiny_server: Server, dialect: Dialect, stream: bool) -> None:
    grammar = forced("if x:\n    a\n    b\n  c\n    d")
    answer = dialect.ask(tiny_server, "x", stream=stream, grammar=grammar, n_indent=4, limit=60)
    assert answer.text == "if x:\n    a\n    b\n  "
    assert answer.finish == ("limit" if dialect is NATIVE else "length")
    whole = dialect.ask(tiny_server, "x", stream=stream, grammar=grammar, n_indent=2, limit=60)
    assert whole.text.endswith("\n  c\n    d")


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
def test_after_the_time_a_line_end_ends_the_text(tiny_server: Server, dialect: Dialect) -> None:
    body = {"grammar": 'root ::= ([a-f] "\\n")+', "limit": 900, "t_max_predict_ms": 20, "ignore_eos": True}
    for stream in (False, True):
        answer = dialect.ask(tiny_server, "x", stream=stream, **body)
        assert answer.text.endswith("\n") and answer.usage is not None and 1 < answer.usage[1] < 900
        assert answer.finish == ("limit" if dialect is NATIVE else "length")


def test_no_end_before_the_least_number_of_tokens(tiny_server: Server) -> None:
    body = {"prompt": "x", "logit_bias": [["</s>", False], [2, 100]], "n_predict": 20}
    assert tiny_server.json("/completion", body)["tokens_predicted"] == 0
    reply = tiny_server.json("/completion", {**body, "min_tokens": 7})
    assert (reply["tokens_predicted"], reply["stop_type"]) == (7, "eos")


# several answers


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_prompts_in_every_form_and_their_answers_keep_their_places(tiny_server: Server, stream: bool) -> None:
    prompts = ["the water", [5, 6, "people", 7], ["hello", 9], [11, 12]]
    body = {"prompt": prompts, "n": 2, "max_tokens": 6, "seed": 3, **hot()}
    alone = [
        tiny_server.json(COMPLETIONS.path, {**body, "prompt": [prompt], "n": 1, "seed": 3 + j})["choices"][0]["text"]
        for prompt in prompts
        for j in range(2)
    ]
    if stream:
        texts = [""] * 8
        for frame in tiny_server.frames(COMPLETIONS.path, body):
            for choice in [] if frame is DONE else frame["choices"]:
                texts[choice["index"]] += choice["text"]
    else:
        reply = tiny_server.json(COMPLETIONS.path, body)
        assert [choice["index"] for choice in reply["choices"]] == list(range(8))
        texts = [choice["text"] for choice in reply["choices"]]
        native = tiny_server.json(NATIVE.path, {**body, "n_cmpl": 2})
        assert [item["index"] for item in native] == list(range(8))
        assert [item["tokens_evaluated"] for item in native] == [item["tokens_evaluated"] for item in native[::2] for _ in (0, 1)]
    assert len(set(texts)) > 4
    assert sum(a == b for a, b in zip(texts, alone, strict=True)) >= 6, "texts are in the wrong places"


def test_answers_to_one_prompt_share_its_reading(tiny_server: Server) -> None:
    for field in ("n_cmpl", "best_of"):
        prompt = f"{field} people water " * 30
        replies = tiny_server.json("/completion", {"prompt": prompt, field: 3, "n": 3, "n_predict": 2, "ignore_eos": True})
        read = sum(reply["timings"]["prompt_n"] for reply in replies)
        assert read < replies[0]["tokens_evaluated"] + 10


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
def test_the_best_of_several(tiny_server: Server, dialect: Dialect) -> None:
    tried = tiny_server.json(
        NATIVE.path, {"prompt": dialect_prompt(tiny_server, dialect), "n": 6, "n_probs": 1, **hot(n_predict=4, seed=5)}
    )
    means = [sum(one["logprob"] for one in reply["completion_probabilities"]) / 4 for reply in tried]
    order = sorted(range(6), key=means.__getitem__, reverse=True)
    reply = tiny_server.json(dialect.path, dialect.body("the water", best_of=6, n=2, limit=4, **hot(seed=5)))
    texts = [one["content"] for one in reply] if dialect is NATIVE else [text_of(choice) for choice in reply["choices"]]
    assert texts == [tried[index]["content"] for index in order[:2]]


def dialect_prompt(server: Server, dialect: Dialect) -> str:
    """The text that a dialect makes of `the water`."""
    if dialect is not CHAT:
        return "the water"
    prompt: str = server.json("/apply-template", {"messages": [{"role": "user", "content": "the water"}]})["prompt"]
    return prompt


def text_of(choice: dict[str, Any]) -> str:
    text: str = choice["text"] if "text" in choice else choice["message"]["content"]
    return text


# sampling


def test_a_seed_decides_the_text(tiny_server: Server) -> None:
    def ask(seed: int) -> tuple[str, int]:
        reply = tiny_server.json("/completion", {"prompt": "a seed", "n_predict": 12, "cache_prompt": False, **hot(seed=seed)})
        return reply["content"], reply["generation_settings"]["seed"]

    assert ask(4) == ask(4)
    assert ask(4)[0] != ask(5)[0]
    text, seed = ask(-1)
    assert 0 <= seed < 2**32 and ask(seed)[0] == text


def test_deterministic_texts_do_not_depend_on_load_and_cache(tiny_server: Server) -> None:
    body = {"prompt": "the same text whatever else happens " * 4, "n_predict": 40, "deterministic": True, **hot(seed=6)}
    alone = tiny_server.json("/completion", body)
    with tiny_server.stream("/completion", {"prompt": "load " * 90, "n_predict": 800, "ignore_eos": True}) as frames:
        next(frames)
        busy = tiny_server.json("/completion", {**body, "n": 2})
        assert busy[0]["content"] == alone["content"] != busy[1]["content"]
    assert alone["generation_settings"]["deterministic"] is True


def test_a_unified_server_says_that_it_cannot_be_deterministic(tiny_llama: Path, tmp_path: Path) -> None:
    with Server(tiny_llama, "-c", "256", "-np", "1", "-t", "1", "--layout", "unified", log=tmp_path / "log") as server:
        reply = server.post("/completion", {"prompt": "x", "deterministic": True})
        assert reply.status_code == 501 and "--layout split" in reply.json()["error"]["message"]
        server.stop()


def test_a_sampler_may_be_named_twice(tiny_server: Server) -> None:
    body = {"prompt": "x", "n_predict": 3, "samplers": ["top_k", "temperature", "top_k", "temperature"], "top_k": 1}
    assert tiny_server.json("/completion", body)["generation_settings"]["samplers"] == body["samplers"]


# context shift


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_answer_outgrows_the_context(shifting_server: Server, dialect: Dialect, stream: bool) -> None:
    answer = dialect.ask(shifting_server, "the water", stream=stream, limit=500, ignore_eos=True, n_discard=40)
    assert answer.usage is not None and answer.usage[1] == 500
    assert answer.finish == ("limit" if dialect is NATIVE else "length")


def test_what_was_shifted_is_reported(shifting_server: Server) -> None:
    body = {"prompt": "the water", "ignore_eos": True}
    long = shifting_server.json("/completion", {**body, "n_predict": 400})
    assert (long["truncated"], long["tokens_predicted"], long["stop_type"]) == (True, 400, "limit")
    settings = long["generation_settings"]
    assert (settings["context_shift"], settings["n_keep"], settings["n_discard"]) == (True, 3, 0)
    short = shifting_server.json("/completion", {**body, "n_predict": 40, "n_keep": -1})
    assert (short["truncated"], short["generation_settings"]["n_keep"]) == (False, -1)
    frames = shifting_server.frames("/completion", {**body, "n_predict": 400})
    assert frames[-1]["truncated"] is True


@pytest.mark.parametrize("fields", [{"n_discard": 10**9}, {"n_keep": 10**9}, {"n_keep": -1, "n_discard": 1}, {"n_keep": 255}])
def test_extreme_shifts(shifting_server: Server, fields: dict[str, int]) -> None:
    reply = shifting_server.json("/completion", {"prompt": "the water", "ignore_eos": True, "n_predict": 300, **fields})
    assert (reply["tokens_predicted"], reply["truncated"]) == (300, True)
    shifting_server.assert_alive()


# what a reply tells


def test_progress_whole_and_streamed(slow_server: Server) -> None:
    body = {"prompt": "some progress please " * 80, "n_predict": 1, "return_progress": True, "cache_prompt": False}
    for dialect in (NATIVE, COMPLETIONS):
        frames = [frame for frame in slow_server.frames(dialect.path, body) if frame is not DONE and "prompt_progress" in frame]
        steps = [frame["prompt_progress"] for frame in frames]
        assert len(steps) > 1
        assert [step["processed"] for step in steps] == sorted({step["processed"] for step in steps})
        assert steps[-1]["processed"] == steps[-1]["total"]
    assert slow_server.json("/completion", body)["prompt_progress"]["processed"] == steps[-1]["total"]


def test_tokens_of_every_dialect_are_the_text(tiny_server: Server) -> None:
    for dialect in DIALECTS:
        body = dialect.body("x", grammar=forced("a😀é"), limit=20, return_tokens=True)
        reply = tiny_server.json(dialect.path, body)
        tokens = reply["tokens"] if dialect is NATIVE else reply["choices"][0]["tokens"]
        assert tiny_server.json("/detokenize", {"tokens": tokens})["content"].strip() == "a😀é"
        frames = [frame for frame in tiny_server.frames(dialect.path, body) if frame is not DONE]
        choices = frames if dialect is NATIVE else [choice for frame in frames for choice in frame["choices"]]
        assert [token for choice in choices for token in choice.get("tokens", [])] == tokens
