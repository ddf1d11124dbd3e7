"""Pairs as a ranking model reads them, and scores as people read them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec.structs import replace

from puna.config import ServerSettings
from puna.errors import InputTooLong, ServerFault
from puna.service.rerank import PairMaker, rank, sigmoid
from puna.service.service import Service
from tests.fakes import BOS, EOS, FACTS, IM_END, IM_START, FakeEngine, FakeTokenizer

RANKS = replace(
    FACTS, pooling="rank", n_embd_out=1, n_ctx_pooled=20, pair_begin=(BOS,), pair_middle=(EOS, IM_END), pair_end=(EOS,)
)
TEMPLATE = "<|im_start|>Q: {query}\nD: {document}<|im_end|>"


def ids(text: str) -> list[int]:
    return list(text.encode())


def maker(query: str, **facts: Any) -> PairMaker:
    return PairMaker(FakeTokenizer(), replace(RANKS, **facts), query)


def test_both_texts_lie_between_the_tokens_that_the_model_wants() -> None:
    assert maker("ab").pair("cd") == [BOS, *ids("ab"), EOS, IM_END, *ids("cd"), EOS]
    assert maker("ab", pair_begin=(), pair_middle=(), pair_end=()).pair("") == ids("ab")


def test_control_tokens_in_the_texts_stay_text() -> None:
    pair = maker("</s>").pair("<s>")
    assert pair == [BOS, *ids("</s>"), EOS, IM_END, *ids("<s>"), EOS]


def test_a_template_of_the_file_is_filled() -> None:
    pair = maker("ab", rerank_template=TEMPLATE).pair("cd")
    assert pair == [IM_START, *ids("Q: ab\nD: cd"), IM_END]


def test_nothing_in_the_texts_is_taken_for_the_template() -> None:
    pair = maker("{document}", rerank_template=TEMPLATE).pair("x<|im_end|>y")
    assert pair == [IM_START, *ids("Q: {document}\nD: x<|im_end|>y"), IM_END]


def test_documents_are_cut() -> None:
    assert maker("ab").pair("cdef", 2) == [BOS, *ids("ab"), EOS, IM_END, *ids("cd"), EOS]
    assert maker("ab", rerank_template=TEMPLATE).pair("cdef", 2) == [IM_START, *ids("Q: ab\nD: cd"), IM_END]
    fitting = maker("ab").fitting("c" * 50, 20)
    assert len(fitting) == 20 and fitting[-1] == EOS
    assert len(maker("ab", rerank_template=TEMPLATE).fitting("c" * 50, 20)) == 20
    assert len(maker("a" * 30).fitting("c", 20)) > 20


def service(engine: FakeEngine) -> Service:
    return Service(engine, ServerSettings())


def scoring(scores: dict[str, float]) -> FakeEngine:
    def vector(tokens: list[int]) -> list[float]:
        text = bytes(token for token in tokens if token < 256).decode()
        return [scores[text.removeprefix("q")]]

    return FakeEngine(facts=RANKS, vector=vector)


async def test_the_best_comes_first_and_equals_keep_their_order() -> None:
    engine = scoring({"a": -3.0, "b": 50.0, "c": -3.0, "d": 60.0, "": 0.0})
    ranking = await rank(service(engine), "q", ["a", "b", "c", "d", ""], param="documents")
    assert [one.index for one in ranking.documents] == [3, 1, 4, 0, 2]
    assert all(0 <= one.score <= 1 for one in ranking.documents)
    assert ranking.documents[2].score == 0.5 and ranking.documents[2].raw == 0.0
    assert ranking.n_tokens == 5 * 5 + 4


async def test_chances_are_given_as_they_are() -> None:
    engine = FakeEngine(facts=replace(RANKS, n_embd_out=2), vector=lambda _tokens: [0.25, 0.75])
    ranking = await rank(service(engine), "q", ["a"], param="documents")
    assert ranking.documents[0].score == ranking.documents[0].raw == 0.25


async def test_a_pair_that_is_too_long_is_named_unless_it_may_be_cut() -> None:
    engine = scoring({"a": 1.0, "b" * 15: 2.0})
    with pytest.raises(InputTooLong, match="item 1 of 'documents' has 35 tokens; the model can take 20") as caught:
        await rank(service(engine), "q", ["a", "b" * 30], param="documents")
    assert caught.value.param == "documents.1" and not engine.embedded
    ranking = await rank(service(engine), "q", ["a", "b" * 30], truncate=True, param="documents")
    assert [one.index for one in ranking.documents] == [1, 0]
    with pytest.raises(InputTooLong):
        await rank(service(engine), "q" * 30, ["a"], truncate=True, param="documents")


@pytest.mark.parametrize("bad", [math.nan, math.inf])
async def test_what_is_no_number_is_a_fault(bad: float) -> None:
    with pytest.raises(ServerFault, match="document 1"):
        await rank(service(scoring({"a": 1.0, "b": bad})), "q", ["a", "b"], param="documents")


def test_a_sigmoid_has_no_overflow() -> None:
    assert sigmoid(0) == 0.5 and sigmoid(1e4) == 1.0 and sigmoid(-1e4) == 0.0
    assert sigmoid(2.0) == pytest.approx(1 - sigmoid(-2.0))
