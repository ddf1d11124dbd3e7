"""Embedding and ranking on real servers."""

from __future__ import annotations

import base64
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import openai
import pytest

from tests import tiny
from tests.e2e.checks import is_sound
from tests.e2e.conftest import ServerMaker
from tests.e2e.server import Server, wait_until

TEXTS = ["the world", "said hello", "time has number", "a"]


@pytest.fixture(scope="module")
def bert_server(tiny_bert: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tiny_bert, "--embedding", "-t", "1", log=tmp_path_factory.mktemp("bert") / "log") as server:
        yield server
        server.stop()


def vectors(server: Server, texts: Any, **more: Any) -> list[list[float]]:
    reply = server.json("/v1/embeddings", {"input": texts, **more})
    return [item["embedding"] for item in sorted(reply["data"], key=lambda item: item["index"])]


def test_an_encoder_serves_what_it_can(bert_server: Server) -> None:
    props = bert_server.get("/props").json()
    assert (props["pooling"], props["embeddings"], props["reranking"], props["total_slots"]) == ("mean", True, False, 1)
    before = bert_server.metric("puna:embedded_inputs_total")
    found = vectors(bert_server, TEXTS)
    assert len(found) == 4 and all(abs(np.linalg.norm(vector) - 1) < 1e-3 for vector in found)
    assert bert_server.metric("puna:embedded_inputs_total") - before == 4
    assert bert_server.metric("llamacpp:requests_processing") == 0
    for path, body in (
        ("/completion", {"prompt": "a"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
        ("/v1/completions", {"prompt": "a"}),
        ("/rerank", {"query": "a", "documents": ["b"]}),
        ("/v1/messages", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 5}),
        ("/v1/responses", {"input": "a"}),
    ):
        assert bert_server.post(path, body).status_code == 501, path
    assert bert_server.get("/slots").status_code == 200 and bert_server.get("/health").status_code == 200


def test_the_openai_sdk_gets_the_same_vectors_in_both_encodings(bert_server: Server) -> None:
    client = openai.OpenAI(base_url=bert_server.url + "/v1", api_key="none", max_retries=0)
    default = client.embeddings.create(model="x", input=TEXTS)
    plain = client.embeddings.create(model="x", input=TEXTS, encoding_format="float", dimensions=64)
    assert len(default.data[0].embedding) == 64 and default.usage.prompt_tokens == default.usage.total_tokens > 8
    for one, other in zip(default.data, plain.data, strict=True):
        assert one.index == other.index and one.embedding == pytest.approx(other.embedding, abs=1e-6)
    with pytest.raises(openai.BadRequestError, match=r"input\.1"):
        client.embeddings.create(model="x", input=["a", ""])


def test_clients_at_once_get_their_own_vectors(bert_server: Server) -> None:
    alone = {text: vectors(bert_server, text)[0] for text in TEXTS}
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: vectors(bert_server, [TEXTS[number % 4], TEXTS[number % 3]]), range(64)))
    for number, pair in enumerate(found):
        for vector, text in zip(pair, (TEXTS[number % 4], TEXTS[number % 3]), strict=True):
            assert float(np.dot(vector, alone[text])) > 0.999


@pytest.mark.parametrize(
    "value", ["", [], [""], ["a", ""], [[]], [[-5]], [[1, 999999]], None, 5, {"a": 1}, [["a", []]], "x " * 600, [[5] * 513]]
)
def test_odd_inputs_are_answered_and_nothing_is_harmed(bert_server: Server, value: Any) -> None:
    for path in ("/v1/embeddings", "/embeddings", "/embedding"):
        assert is_sound(bert_server.post(path, {"input": value}), statuses=(400,))
    assert len(vectors(bert_server, "a")) == 1 and bert_server.worker_pids() == [bert_server.first_worker]


def test_vectors_survive_a_worker_that_is_killed(tiny_bert: Path, make_server: ServerMaker) -> None:
    server = make_server(tiny_bert, "-t", "1", "-ub", "16")
    texts = [f"{number} {TEXTS[number % 4]}" for number in range(400)]
    wanted = vectors(server, texts)
    server.client.timeout = httpx.Timeout(60)
    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(vectors, server, texts)
        wait_until(lambda: server.busy_slots() == 1, 10, "it does not begin")
        os.kill(server.first_worker, signal.SIGKILL)
        assert np.allclose(working.result(60), wanted, atol=0.02)
    assert server.metric("puna:engine_restarts_total") == 1


def test_a_client_that_leaves_stops_its_work(tiny_bert: Path, make_server: ServerMaker) -> None:
    server = make_server(tiny_bert, "-t", "1", "-ub", "8")

    def leave() -> None:
        with pytest.raises(httpx.TimeoutException):
            httpx.post(server.url + "/v1/embeddings", json={"input": ["a b c d e"] * 20000}, timeout=2, trust_env=False)

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join(10)
    wait_until(lambda: server.metric("llamacpp:requests_processing") == 0, 5, "it goes on")
    assert server.metric("puna:embedded_inputs_total") < 20000


def test_a_ranking_model_ranks(tiny_reranker: Path, make_server: ServerMaker) -> None:
    server = make_server(tiny_reranker, "--reranking", "-t", "1")
    documents = ["the world said hello", "", "time has been", "no"]
    reply = server.json("/v1/rerank", {"query": "hello world", "documents": documents, "return_documents": True})
    scores = [one["relevance_score"] for one in reply["results"]]
    assert scores == sorted(scores, reverse=True) and all(0 <= score <= 1 for score in scores)
    assert {one["index"]: one["document"]["text"] for one in reply["results"]} == dict(enumerate(documents))
    for path in ("/rerank", "/reranking", "/v1/reranking", "/v2/rerank"):
        again = server.json(path, {"query": "hello world", "documents": documents[::-1]})
        assert [3 - one["index"] for one in again["results"]] == [one["index"] for one in reply["results"]]
    error = server.post("/rerank", {"query": "a", "documents": ["b", "c " * 600]})
    assert error.status_code == 400 and error.json()["error"]["param"] == "documents.1"
    assert server.post("/v1/embeddings", {"input": "a"}).status_code == 501
    assert server.post("/completion", {"prompt": "a"}).status_code == 501


def test_text_and_vectors_from_one_model(tiny_llama: Path, make_server: ServerMaker) -> None:
    server = make_server(tiny_llama, "-c", "512", "-np", "2", "-t", "1", "--embeddings", "--pooling", "mean")
    grammar = 'root ::= "' + "hello world " * 20 + '"'
    with ThreadPoolExecutor(4) as pool:
        texts = [pool.submit(server.json, "/completion", {"prompt": "x", "grammar": grammar}) for _ in range(2)]
        found = [pool.submit(vectors, server, [f"{number} the water"] * 20) for number in range(6)]
        assert all(text.result()["content"] == "hello world " * 20 for text in texts)
        assert all(len(one.result()) == 20 for one in found)
    packed = server.json("/embedding", {"content": "hello", "encoding_format": "base64"})[0]["embedding"][0]
    assert len(base64.b64decode(packed)) == 4 * 64
    assert server.post("/rerank", {"query": "a", "documents": ["b"]}).status_code == 501


def test_without_the_flag_a_generating_model_does_neither(tiny_server: Server) -> None:
    assert is_sound(tiny_server.post("/v1/embeddings", {"input": "a"}), statuses=(501,))
    assert is_sound(tiny_server.post("/rerank", {"query": "a", "documents": ["b"]}), statuses=(501,))


def test_per_token_vectors(tiny_bert: Path, make_server: ServerMaker) -> None:
    server = make_server(tiny_bert, "--pooling", "none", "-t", "1")
    (one,) = server.json("/embeddings", {"input": [[2, 9, 3]]})
    assert np.array(one["embedding"]).shape == (3, 64)
    assert server.post("/v1/embeddings", {"input": "a"}).status_code == 400


def test_a_long_input_to_a_growing_context(tmp_path: Path, make_server: ServerMaker) -> None:
    model = tiny.write_bert(tmp_path / "long.gguf", n_ctx_train=2048)
    server = make_server(model, "-t", "1")
    short, long = vectors(server, [[2, 9, 3], [5] * 2048])
    assert len(long) == 64 and np.allclose(vectors(server, [[2, 9, 3]])[0], short, atol=0.02)
    error = server.post("/v1/embeddings", {"input": ["a", [5] * 2049]}).json()["error"]
    assert (error["param"], error["n_prompt_tokens"], error["n_ctx"]) == ("input.1", 2049, 2048)
