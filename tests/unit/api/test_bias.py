"""`logit_bias` in its forms, on the routes where each is documented."""

from __future__ import annotations

import math
from typing import Any

import pytest

from puna.api.bias import decode_bias
from puna.errors import InvalidRequest
from tests.fakes import FakeEngine, FakeTokenizer
from tests.web import client


@pytest.mark.parametrize(
    "value, pairs",
    [
        (None, ()),
        ([], ()),
        ({}, ()),
        ([[1, 5]], ((1, 5.0),)),
        ([[1, -0.5], [2, False]], ((1, -0.5), (2, -math.inf))),
        ({"1": 2, "259": False}, ((1, 2.0), (259, -math.inf))),
        ([["ab", 1]], ((97, 1.0), (98, 1.0))),
        ({"a": -100}, ((97, -100.0),)),
        ([[1, 1], [1, 2]], ((1, 2.0),)),
        ([[1, 1e300], [2, -1e300]], ((1, 10_000.0), (2, -10_000.0))),
    ],
)
def test_forms(value: Any, pairs: tuple[tuple[int, float], ...]) -> None:
    assert decode_bias(value, FakeTokenizer(), texts=True) == pairs


BAD = [
    "x",
    5,
    {"1": None},
    {"1": True},
    {"1": "2"},
    {"1": math.inf},
    {"1": math.nan},
    {"260": 1},
    {"-1": 1},
    [[260, 1]],
    [[-1, False]],
    [[2**70, 1]],
    [[1]],
    [[1, 2, 3]],
    [[1, True]],
    [[1, None]],
    [[1.5, 1]],
    [[True, 1]],
    [[None, 1]],
    [1],
    [{"id": 1}],
]


@pytest.mark.parametrize("value", BAD, ids=repr)
@pytest.mark.parametrize("texts", [True, False])
def test_bad_forms_are_refused(value: Any, texts: bool) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode_bias(value, FakeTokenizer(), texts=texts)
    assert (caught.value.param or "").split(".")[0] == "logit_bias"


@pytest.mark.parametrize("value", [{"AI": -100}, [["x", 1]], {"1" * 13: 1}])
def test_texts_are_refused_where_they_are_not_documented(value: Any) -> None:
    with pytest.raises(InvalidRequest):
        decode_bias(value, FakeTokenizer(), texts=False)


def test_a_blank_that_the_vocabulary_adds_is_not_meant() -> None:
    class Spaced(FakeTokenizer):
        def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
            return [32, *super().tokenize(text, add_special=add_special, parse_special=parse_special)]

    assert decode_bias([["a", 1]], Spaced(), texts=True) == ((97, 1.0),)
    assert decode_bias([[" ", 1]], Spaced(), texts=True) == ((32, 1.0),)


async def test_routes_differ_in_texts() -> None:
    engine = FakeEngine()
    body = {"prompt": "x", "messages": [{"role": "user", "content": "x"}]}
    async with client(engine) as http:
        for path, texts, status in (
            ("/completion", {}, 200),
            ("/v1/completions", {}, 400),
            ("/v1/chat/completions", {}, 400),
            ("/v1/chat/completions", {"logit_bias_type": "tokens"}, 200),
            ("/v1/completions", {"logit_bias_type": "input_ids"}, 400),
        ):
            reply = await http.post(path, json={**body, **texts, "logit_bias": {"a": 5}})
            assert reply.status_code == status, path
            if status == 200:
                assert engine.last.sampling.logit_bias == ((97, 5.0),)
