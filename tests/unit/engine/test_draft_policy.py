"""How long drafts are: as long as they pay."""

from __future__ import annotations

import pytest

from puna.engine.draft_policy import RETRY, SHORT, Acceptance, DraftPolicy, Offer


def taught(quiet: float, row: float, n: int = 1) -> DraftPolicy:
    policy = DraftPolicy()
    for _ in range(50):
        policy.observe(n, 0, quiet)
        policy.observe(n, 4, quiet + 4 * row)
    return policy


def rate(chance: float, length: int, quiet: float, row: float) -> float:
    return sum(chance**n for n in range(length + 1)) / (quiet + length * row)


@pytest.mark.parametrize("chance", [0.0, 0.2, 0.5, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("row", [0.1, 0.5, 0.9, 1.0, 1.5])
def test_a_draft_is_worth_it_and_about_as_long_as_is_best(chance: float, row: float) -> None:
    chosen = taught(1, row).lengths([Offer(chance, 16)], 1)[0]
    best = max(rate(chance, n, 1, row) for n in range(17))
    assert rate(chance, chosen, 1, row) >= max(rate(chance, 0, 1, row), best / 1.1)


def test_rows_that_cost_a_whole_step_are_never_worth_it() -> None:
    assert taught(1, 1).lengths([Offer(1.0, 16)], 1) == [0]


def test_nothing_is_drafted_before_a_plain_step_was_seen() -> None:
    policy = DraftPolicy()
    assert policy.lengths([Offer(0.9, 16)], 1) == [0]
    policy.observe(1, 0, 1.0)
    assert policy.lengths([Offer(0.9, 16)], 1)[0] > 0
    assert policy.lengths([Offer(0.9, 16)], 2) == [0]


def test_many_sequences_leave_nothing_to_gain() -> None:
    """Where a step of 8 costs eight rows, a drafted row costs as much as a sure one."""
    assert taught(8, 1, n=8).lengths([Offer(0.9, 16)] * 8, 8) == [0] * 8
    assert sum(taught(2, 0.1, n=8).lengths([Offer(0.9, 16)] * 8, 8)) > 8


def test_the_better_guess_gets_more() -> None:
    low, high = taught(1, 0.2, n=2).lengths([Offer(0.6, 16), Offer(0.95, 16)], 2)
    assert low < high


def test_limits_of_requests() -> None:
    policy = DraftPolicy(adaptive=False)
    assert policy.lengths([Offer(0.5, 5), Offer(0.5, 5, least=6), Offer(0.5, 5, p_min=0.6), Offer(0.5, 5, p_min=0.5)], 4) == [
        5,
        0,
        0,
        5,
    ]
    assert taught(1, 0.01).lengths([Offer(0.9, 3)], 1) == [3]


def test_it_is_tried_again_now_and_then_and_used_once_it_pays() -> None:
    policy = taught(1, 1)
    lengths = [policy.lengths([Offer(0.9, 16)], 1)[0] for _ in range(3 * RETRY)]
    assert [n for n in lengths if n] == [SHORT] * 3
    for _ in range(40):
        policy.observe(1, SHORT, 1.1)
    assert policy.lengths([Offer(0.9, 16)], 1)[0] > SHORT


def test_a_guess_below_the_least_chance_is_not_even_tried() -> None:
    policy = taught(1, 1)
    assert not any(policy.lengths([Offer(0.4, 16, p_min=0.5)], 1)[0] for _ in range(3 * RETRY))


def test_chances_follow_what_was_right() -> None:
    acceptance = Acceptance()
    for _ in range(40):
        acceptance.observe(3, 0, 1)
        acceptance.observe(20, 16, 16)
    assert acceptance.chance(3) < 0.05
    assert acceptance.chance(20) > 0.98
    for _ in range(40):
        acceptance.observe(3, 4, 5)
    assert acceptance.chance(3) == pytest.approx(0.8, abs=0.1)
    assert acceptance.chance(5) == 0.5  # never seen


def test_longer_matches_are_better_from_the_start() -> None:
    chances = [Acceptance().chance(match) for match in (3, 4, 8, 16, 32)]
    assert chances == sorted(chances)
