"""The routes that rank, in the shapes of those whose clients ask."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from puna.api.rerank.routes import FIRST, SECOND
from tests.fakes import FACTS, FakeEngine
from tests.web import client

RANKS = replace(FACTS, pooling="rank", n_embd_out=1, n_ctx_pooled=16, has_decoder=False)
DOCUMENTS = ["a", "b", "", "d"]


def engine() -> FakeEngine:
    """Scores a pair by its last byte."""
    return FakeEngine(facts=RANKS, vector=lambda tokens: [float(tokens[-1] - 97)])


async def send(path: str, body: dict[str, Any], of: FakeEngine | None = None) -> Any:
    async with client(of or engine()) as http:
        return await http.post(path, json=body)


async def ok(path: str, **body: Any) -> Any:
    reply = await send(path, {"query": "b", **body})
    assert reply.status_code == 200, reply.text
    return reply.json()


@pytest.mark.parametrize("path", [*FIRST, *SECOND])
async def test_one_reply_for_many_clients(path: str) -> None:
    reply = await ok(path, documents=DOCUMENTS, model="m", top_n=None)
    assert [one["index"] for one in reply["results"]] == [3, 1, 2, 0]
    scores = [one["relevance_score"] for one in reply["results"]]
    assert sorted(scores, reverse=True) == scores and all(0 < score < 1 for score in scores)
    assert all(set(one) == {"index", "relevance_score"} for one in reply["results"])
    assert reply["usage"] == {"prompt_tokens": 7, "total_tokens": 7}
    assert reply["object"] == "list" and reply["model"] == "tiny-test" and reply["id"].startswith("rerank-")
    assert reply["meta"]["api_version"]["version"] == ("2" if "v2" in path else "1")


async def test_how_many_are_returned() -> None:
    for field in ("top_n", "top_k"):
        assert [one["index"] for one in (await ok("/rerank", documents=DOCUMENTS, **{field: 2}))["results"]] == [3, 1]
    assert len((await ok("/rerank", documents=DOCUMENTS, top_n=99))["results"]) == 4
    assert (await ok("/rerank", documents=DOCUMENTS, top_n=0))["results"] == []


async def test_documents_come_back_when_asked_for() -> None:
    given = ["a", {"text": "b", "id": 7}, ""]
    reply = await ok("/v1/rerank", documents=given, return_documents=True)
    assert [one["document"] for one in reply["results"]] == [{"text": "b", "id": 7}, {"text": ""}, {"text": "a"}]


@pytest.mark.parametrize("path", FIRST)
async def test_texts_bring_a_bare_list(path: str) -> None:
    reply = await ok(path, texts=["a", "c"], top_n=1)
    assert [set(one) for one in reply] == [{"index", "score"}] and reply[0]["index"] == 1
    reply = await ok(path, texts=["a", "c"], return_text=True, raw_scores=True)
    assert reply == [{"index": 1, "score": 2.0, "text": "c"}, {"index": 0, "score": 0.0, "text": "a"}]


async def test_raw_scores_and_cut_documents() -> None:
    reply = await ok("/rerank", documents=["a", "cd"], raw_scores=True, max_tokens_per_doc=1)
    assert [(one["index"], one["relevance_score"]) for one in reply["results"]] == [(1, 2.0), (0, 0.0)]
    reply = await ok("/rerank", documents=["a", "c" * 30 + "z"], truncate=True, raw_scores=True)
    assert [(one["index"], one["relevance_score"]) for one in reply["results"]] == [(1, 2.0), (0, 0.0)]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"documents": ["a"]}, "query"),
        ({"query": None, "documents": ["a"]}, "query"),
        ({"query": 5, "documents": ["a"]}, "query"),
        ({"query": "", "documents": ["a"]}, "query"),
        ({"query": ["q"], "documents": ["a"]}, "query"),
        ({"query": "q"}, "documents"),
        ({"query": "q", "documents": None}, "documents"),
        ({"query": "q", "documents": []}, "documents"),
        ({"query": "q", "documents": "a"}, "documents"),
        ({"query": "q", "documents": 123}, "documents"),
        ({"query": "q", "documents": [1, 2]}, "documents.0"),
        ({"query": "q", "documents": ["a", None]}, "documents.1"),
        ({"query": "q", "documents": ["a", {"title": "b"}]}, "documents.1"),
        ({"query": "q", "documents": ["a", {"text": 5}]}, "documents.1"),
        ({"query": "q", "texts": []}, "texts"),
        ({"query": "q", "texts": ["a", 5]}, "texts.1"),
        ({"query": "q", "texts": ["a"], "documents": ["a"]}, "texts"),
        ({"query": "q", "documents": ["a"], "top_n": -1}, "top_n"),
        ({"query": "q", "documents": ["a"], "top_n": "2"}, "top_n"),
        ({"query": "q", "documents": ["a"], "max_tokens_per_doc": 0}, "max_tokens_per_doc"),
        ({"query": "q", "documents": ["a"], "return_documents": "yes"}, "return_documents"),
    ],
)
async def test_what_is_wrong_is_named(body: dict[str, Any], param: str) -> None:
    used = engine()
    reply = await send("/v1/rerank", body, used)
    error = reply.json()["error"]
    assert reply.status_code == 400 and error["param"] == param and error["message"] == reply.json()["message"]
    assert used.embedded == []


async def test_a_long_document_is_named_with_both_counts() -> None:
    reply = await send("/rerank", {"query": "bb", "documents": ["a", "c" * 15, "d"]})
    error = reply.json()["error"]
    assert reply.status_code == 400 and (error["param"], error["n_prompt_tokens"], error["n_ctx"]) == ("documents.1", 17, 16)
    assert "item 1" in error["message"]


async def test_fields_of_documents_cannot_be_chosen() -> None:
    assert (await send("/rerank", {"query": "q", "documents": ["a"], "rank_fields": ["title"]})).status_code == 501
    assert (await send("/rerank", {"query": "q", "documents": ["a"], "rank_fields": ["text"]})).status_code == 200


@pytest.mark.parametrize("path", [*FIRST, *SECOND])
async def test_servers_that_do_not_rank_say_how_they_would(path: str) -> None:
    for facts, hint in ((FACTS, "--reranking"), (replace(FACTS, pooling="mean"), "--reranking"),
                        (replace(FACTS, why_no_vectors="no ranking head"), "no ranking head")):  # fmt: skip
        reply = await send(path, {"query": "q", "documents": ["a"]}, FakeEngine(facts=facts))
        error = reply.json()["error"]
        assert reply.status_code == 501 and error["type"] == "not_supported_error" and hint in error["message"]
