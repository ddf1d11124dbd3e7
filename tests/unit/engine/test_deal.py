"""Inputs dealt out to lanes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from puna.engine.packing import TOKEN, Input, deal


def inputs(*lengths: int) -> list[Input]:
    return [Input(1, index, bytes(TOKEN * length)) for index, length in enumerate(lengths)]


def loads(shares: list[list[Input]]) -> list[int]:
    return [sum(one.n_tokens for one in share) for share in shares]


def test_shares_have_about_as_many_tokens() -> None:
    assert sorted(loads(deal(inputs(26, 26, 26, 26), 2))) == [52, 52]
    assert sorted(loads(deal(inputs(10, 100, 30, 30, 30), 2))) == [100, 100]
    assert loads(deal(inputs(7), 4)) == [7]


@given(st.lists(st.integers(1, 512), min_size=1, max_size=80), st.integers(1, 16))
def test_nothing_is_lost_and_every_share_fits_a_lane(lengths: list[int], n: int) -> None:
    taken: list[int] = []
    for length in lengths:  # as much as is taken for a step
        if sum(taken) + length <= 128 * n or not taken:
            taken.append(length)
    shares = deal(inputs(*taken), n)
    assert sorted(one.index for share in shares for one in share) == list(range(len(taken)))
    assert len(shares) == min(n, len(taken)) and all(shares)
    assert max(loads(shares)) <= 512
