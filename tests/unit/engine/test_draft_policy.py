"""How long drafts are: as long as they pay."""

from __future__ import annotations

import pytest

from puna.engine.draft_costs import StepCosts
from puna.engine.draft_policy import (
    MATCH_CHANCES,
    MATCHES,
    PROB_CHANCES,
    PROBS,
    RETRY,
    SHORT,
    Acceptance,
    DraftPolicy,
    Offer,
    Wish,
    match_grades,
    prob_grade,
)


def offer(chance: float, most: int = 16, least: int = 0) -> Offer:
    return Offer([chance] * most, least)


def taught(quiet: float, row: float, n: int = 1) -> DraftPolicy:
    policy = DraftPolicy()
    for _ in range(50):
        policy.observe(n, 0, quiet)
        policy.observe(n, 4, quiet + 4 * row)
        policy.observe(n, 32, quiet + 32 * row)
    return policy


def rate(chance: float, length: int, quiet: float, row: float) -> float:
    return sum(chance**n for n in range(length + 1)) / (quiet + length * row)


@pytest.mark.parametrize("chance", [0.0, 0.2, 0.5, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("row", [0.1, 0.5, 0.9, 1.0, 1.5])
def test_a_draft_is_worth_it_and_about_as_long_as_is_best(chance: float, row: float) -> None:
    chosen = taught(1, row).lengths([offer(chance)], 1)[0]
    best = max(rate(chance, n, 1, row) for n in range(17))
    assert rate(chance, chosen, 1, row) >= max(rate(chance, 0, 1, row), best / 1.1)


def test_steps_of_uneven_cost() -> None:
    """Where three rows cost as much as four, there are four; and where eight cost hardly more, eight."""
    policy = DraftPolicy()
    for _ in range(3):
        for rows, seconds in ((1, 1.0), (2, 1.6), (3, 2.4), (4, 2.4), (5, 4.0), (8, 4.0), (9, 9.0), (17, 20.0)):
            policy.observe(1, rows - 1, seconds)
    assert policy.lengths([offer(0.85)], 1) == [3]
    assert policy.lengths([offer(0.99)], 1) == [7]


def test_a_weak_spot_is_not_drafted_across_unless_much_lies_behind() -> None:
    policy = taught(1, 0.4)
    assert policy.lengths([Offer([0.95] * 4 + [0.1] + [0.95] * 8)], 1) == [4]
    assert policy.lengths([Offer([0.95] * 4 + [0.9] + [0.95] * 8)], 1)[0] > 4


def test_rows_that_cost_a_whole_step_are_never_worth_it() -> None:
    assert taught(1, 1).lengths([offer(1.0)], 1) == [0]


def test_nothing_is_drafted_before_a_plain_step_was_seen() -> None:
    policy = DraftPolicy()
    assert policy.lengths([offer(0.9)], 1) == [0]
    policy.observe(1, 0, 1.0)
    assert policy.lengths([offer(0.9)], 1)[0] > 0
    assert policy.lengths([offer(0.9)], 2) == [0]


def test_many_sequences_leave_nothing_to_gain() -> None:
    """Where a step of 8 costs eight rows, a drafted row costs as much as a sure one."""
    assert taught(8, 1, n=8).lengths([offer(0.9)] * 8, 8) == [0] * 8
    assert sum(taught(2, 0.1, n=8).lengths([offer(0.9)] * 8, 8)) > 8


def test_the_better_guess_gets_more() -> None:
    low, high = taught(1, 0.2, n=2).lengths([offer(0.6), offer(0.95)], 2)
    assert low < high


def test_limits_of_requests() -> None:
    policy = DraftPolicy(adaptive=False)
    assert policy.lengths([offer(0.5, 5), offer(0.5, 5, least=6), Offer([])], 4) == [5, 0, 0]
    assert taught(1, 0.01).lengths([offer(0.9, 3)], 1) == [3]


def test_it_is_tried_again_now_and_then_and_used_once_it_pays() -> None:
    policy = taught(1, 1)
    lengths = [policy.lengths([offer(0.9)], 1)[0] for _ in range(3 * RETRY)]
    assert [n for n in lengths if n] == [SHORT] * 3
    for _ in range(40):
        policy.observe(1, SHORT, 1.1)
    assert policy.lengths([offer(0.9)], 1)[0] >= SHORT


def test_a_guess_that_is_not_wanted_is_not_even_tried() -> None:
    policy = taught(1, 1)
    assert not any(policy.lengths([Offer([])], 1)[0] for _ in range(3 * RETRY))


def test_chances_follow_what_was_right() -> None:
    acceptance = Acceptance(MATCH_CHANCES)
    short, long = match_grades(3, 4), match_grades(40, 16)
    for _ in range(40):
        acceptance.observe(short[:1], 0)
        acceptance.observe(long, 16)
    assert acceptance.chances(short)[0] < 0.05
    assert acceptance.chances(short)[1:] == [MATCH_CHANCES[4], MATCH_CHANCES[4], MATCH_CHANCES[5]]  # never seen
    assert min(acceptance.chances(long)) > 0.98
    for _ in range(40):
        acceptance.observe(match_grades(3, 4), 3)
    assert acceptance.chances(short)[0] > 0.98


def test_grades_tell_better_guesses_from_worse() -> None:
    assert match_grades(0, 3) == (0, 1, 2)
    assert match_grades(10**6, 1) == (len(MATCHES),) == (len(MATCH_CHANCES) - 1,)
    assert [prob_grade(prob) for prob in (0.0, 0.5, 1.0)] == [0, 2, len(PROBS)]
    assert len(PROB_CHANCES) == len(PROBS) + 1


# a draft model


def with_model(quiet: float, row: float, one: float, n: int = 1) -> DraftPolicy:
    policy = taught(quiet, row, n)
    for k in (1, n):
        policy.observe_guessing(k, one)
    policy.observe_reading(100, one * 20)
    return policy


def wish(chance: float, most: int = 16, n_unread: int = 1, n_expected: int = 200) -> Wish:
    return Wish(chance, most, n_unread, n_expected)


@pytest.mark.parametrize("chance", [0.1, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("one", [0.02, 0.1, 0.5])
def test_a_model_is_asked_for_as_much_as_pays(chance: float, one: float) -> None:
    chosen = with_model(1, 0.2, one).guesses([wish(chance)], 1)[0]
    best = max(rate(chance, n, 1, 0.2 + one) for n in range(17))
    assert rate(chance, chosen, 1, 0.2 + one) >= max(1.0, best / 1.06)
    if best < 1.05:
        assert chosen == 0


def test_a_model_is_not_asked_where_many_sequences_fill_the_steps() -> None:
    assert with_model(8, 1, 0.5, n=8).guesses([wish(0.9)] * 8, 8) == [0] * 8


def test_of_several_those_are_asked_about_that_are_likely_right() -> None:
    lengths = with_model(2, 0.2, 0.1, n=4).guesses([wish(0.9), wish(0.01), wish(0.9), wish(0.01)], 4)
    assert lengths[1] == lengths[3] == 0 < min(lengths[0], lengths[2])


def test_what_would_have_to_be_read_first_must_be_worth_it() -> None:
    policy = with_model(1, 0.2, 0.05)
    assert policy.guesses([wish(0.9, n_unread=1000, n_expected=200)], 1)[0] > 0
    assert policy.guesses([wish(0.9, n_unread=100_000, n_expected=200)], 1) == [0]


def test_a_model_that_is_mostly_wrong_is_asked_now_and_then() -> None:
    policy = with_model(1, 0.5, 0.3)
    lengths = [policy.guesses([wish(0.05)], 1)[0] for _ in range(2 * RETRY)]
    assert [n for n in lengths if n] == [SHORT] * 2
    assert not any(policy.guesses([wish(0.05, n_unread=10_000)], 1)[0] for _ in range(2 * RETRY))


def test_without_adaptation_a_model_is_asked_for_all() -> None:
    policy = DraftPolicy(adaptive=False)
    assert policy.guesses([wish(0.01, 7)], 1) == [7]
    assert policy.least_chance(1, 1) == 0.0


def test_new_requests_begin_with_what_was_usual() -> None:
    policy = DraftPolicy()
    for _ in range(200):
        policy.observe_chance(0, 4)
    assert policy.usual < 0.1
    for _ in range(200):
        policy.observe_chance(4, 4)
    assert policy.usual > 0.95


def test_a_guess_ends_where_it_is_not_worth_its_rows() -> None:
    cheap, dear = with_model(1, 0.05, 0.01).least_chance(1, 1), with_model(1, 0.6, 0.2).least_chance(1, 1)
    assert 0 < cheap < 0.1 < 0.5 < dear <= 0.9


# costs


def test_costs_between_and_beyond_what_was_seen() -> None:
    costs = StepCosts()
    costs.observe(1, 1.0)
    assert costs.expected(5, 1) == pytest.approx(2.6)
    costs.observe(9, 9.0)
    assert costs.expected(5, 1) == pytest.approx(5.0)
    assert costs.expected(10, 1) == pytest.approx(9.4)  # what is never tried is never learned
    for _ in range(3):
        costs.observe(5, 2.0)
    assert costs.seen(5) == pytest.approx(2.0)
    assert costs.seen(6) is None


def test_a_row_is_never_free() -> None:
    costs = StepCosts()
    costs.observe(1, 1.0)
    costs.observe(8, 0.5)
    assert costs.expected(8, 1) > 1.0
    assert costs.expected(20, 1) > costs.expected(8, 1)
