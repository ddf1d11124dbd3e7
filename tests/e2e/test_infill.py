"""Filling in the middle on a real server: editors' requests, and what a superseded one costs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import tiny
from tests.e2e.dialects import forced
from tests.e2e.server import Server, wait_until

BODY = {"input_prefix": "the water\n", "prompt": "  number ", "input_suffix": "\nend"}


@pytest.fixture(scope="module")
def code_server(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A model with tokens for files, and a context that grows slow enough to be interrupted."""
    vocab = tiny.bpe_vocab(extra=("<|repo_name|>", "<|file_sep|>"))
    model = tiny.write_llama(tiny_folder / "code.gguf", vocab=vocab, n_layer=8, n_embd=192, n_ctx_train=8192, file_type="f16")
    with Server(model, "-c", "8192", "-np", "2", "-t", "1", log=tmp_path_factory.mktemp("server") / "log") as server:
        yield server
        server.stop()


def test_the_prompt_and_the_text(code_server: Server) -> None:
    extra = [{"filename": "a.py", "text": "hello"}, {"text": "<|fim_middle|>"}]
    body = {**BODY, "input_extra": extra, "grammar": forced("is 5"), "n_predict": 20}
    for stream in (False, True):
        reply = code_server.frames("/infill", body)[-1] if stream else code_server.json("/infill", body)
        assert reply["prompt"] == (
            "<|repo_name|>myproject\n<|file_sep|>a.py\nhello<|file_sep|>tmp\n<|fim_middle|><|file_sep|>filename\n"
            "<|fim_prefix|>the water\n  number <|fim_suffix|>\nend<|fim_middle|>"
        )
        assert reply["stop_type"] == "eos" and reply["content"] == ("" if stream else "is 5")


def test_a_warm_up_is_used(code_server: Server) -> None:
    extra = [{"filename": "b.py", "text": "about the people " * 60}]
    warm = {
        "input_prefix": "",
        "input_suffix": "",
        "prompt": "",
        "input_extra": extra,
        "n_predict": 0,
        "samplers": [],
        "temperature": 0,
    }
    reply = code_server.post("/infill", {**warm, "response_fields": [""]})
    assert (reply.status_code, reply.text) == (200, "{}")
    timings = code_server.json("/infill", {**BODY, "input_extra": extra, "n_predict": 1})["timings"]
    assert timings["cache_n"] > 150 and timings["prompt_n"] < 30


def test_a_model_without_the_tokens_says_which(tmp_path: Path, tiny_folder: Path) -> None:
    model = tiny.write_llama(tiny_folder / "no-fim.gguf", vocab=tiny.spm_vocab(fim=False))
    with Server(model, "-c", "256", "-np", "1", "-t", "1", log=tmp_path / "log") as server:
        reply = server.post("/infill", BODY)
        assert reply.status_code == 501
        assert "no prefix and no suffix and no middle token" in reply.json()["error"]["message"]
        text = server.json("/v1/completions", {"prompt": "a", "suffix": " the end", "grammar": forced("b"), "max_tokens": 5})
        assert text["choices"][0]["text"] == "b the end"
        server.stop()


def test_a_suffix_fills_the_middle(code_server: Server) -> None:
    body = {"prompt": "be", "suffix": "af", "grammar": forced("x"), "max_tokens": 5, "echo": True, "verbose": True}
    reply = code_server.json("/v1/completions", body)
    assert reply["__verbose"]["prompt"] == "<|fim_prefix|>be<|fim_suffix|>af<|fim_middle|>"
    assert reply["choices"][0]["text"] == "bex"


class Asked(threading.Thread):
    """A request on a thread of its own."""

    def __init__(self, server: Server, body: dict[str, Any]) -> None:
        super().__init__()
        self.server, self.body = server, body
        self.reply: Any = None
        self.start()

    def run(self) -> None:
        self.reply = self.server.json("/infill", self.body)


LONG = {**BODY, "ignore_eos": True, "n_predict": 8000}


def test_the_newest_of_a_slot_ends_those_before_it(code_server: Server) -> None:
    older = [Asked(code_server, {**LONG, "id_slot": 0})]
    code_server.wait_busy(1)
    other = Asked(code_server, {**LONG, "n_predict": 60})
    for _ in range(3):
        older.append(Asked(code_server, {**LONG, "id_slot": 0}))
        older[-2].join(10)  # the new one has come
    newest = Asked(code_server, {**LONG, "id_slot": 0, "n_predict": 5})
    for one in (*older, newest, other):
        one.join(20)
    assert [one.reply["stop_type"] for one in (*older, newest, other)] == ["none"] * 4 + ["limit"] * 2
    assert older[0].reply["content"]
    assert newest.reply["tokens_predicted"] == 5 and other.reply["tokens_predicted"] == 60
    code_server.wait_idle()


def test_those_that_wait_are_answered_empty_and_cost_nothing(code_server: Server) -> None:
    blockers = [Asked(code_server, {**LONG, "id_slot": key, "n_predict": 500}) for key in (10, 11)]
    code_server.wait_busy(2)
    before = code_server.metric("llamacpp:prompt_tokens_total")
    waiting = [Asked(code_server, {**LONG, "id_slot": 7, "input_prefix": f"{n} " * 1000}) for n in range(1)]
    wait_until(lambda: code_server.metric("llamacpp:requests_deferred") == 1, 5, "nobody waits")
    for n in range(1, 4):
        waiting.append(Asked(code_server, {**LONG, "id_slot": 7, "input_prefix": f"{n} " * 1000}))
        waiting[-2].join(5)
    newest = Asked(code_server, {**BODY, "id_slot": 7, "n_predict": 1})
    waiting[-1].join(5)
    assert [(one.reply["content"], one.reply["stop_type"], one.reply["tokens_predicted"]) for one in waiting] == [
        ("", "none", 0)
    ] * 4
    for one in (*blockers, newest):
        one.join(60)
    assert newest.reply["stop_type"] in ("limit", "eos")
    assert code_server.metric("llamacpp:prompt_tokens_total") - before < 200
    code_server.wait_idle()


def test_a_superseded_request_that_reads_its_prompt_stops_within_a_step(code_server: Server) -> None:
    first = Asked(code_server, {**LONG, "id_slot": 3, "input_prefix": "word " * 1400})
    code_server.wait_busy(1)
    newest = Asked(code_server, {**BODY, "id_slot": 3, "n_predict": 1})
    first.join(10)
    newest.join(10)
    assert first.reply["stop_type"] == "none" and newest.reply["stop_type"] in ("limit", "eos")
    code_server.wait_idle()
