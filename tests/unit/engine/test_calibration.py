"""From made-up times to a choice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace as replaced

from puna.engine.calibration import (
    FEWEST,
    MOST,
    Costs,
    Open,
    Way,
    batched,
    calibrate,
    is_better,
    is_decided,
    measure_pairs,
    request,
    single,
    thread_counts,
)
from puna.tuning import Tuning

START = Tuning(layout="split", flash_short=True, flash_long=False, n_threads=8, n_threads_batch=8)
EVERYTHING = Open(flash=True, layout=True, short=True, n_threads=(4, 7), n_threads_batch=(4, 7))
WAY = Way("split", False, 8, 8, True)
OTHER = Way("split", True, 8, 8, True)


def flat(seconds: float) -> Costs:
    return Costs(alone=seconds, crowd=seconds, reading=seconds)


class Clock:
    """Measures by a rule, and notes what was asked."""

    def __init__(self, rule: Callable[[Way], Costs], rounds: int = 1000) -> None:
        self._rule = rule
        self._rounds = rounds
        self.asked: list[Way] = []

    def __call__(self, way: Way) -> Costs | None:
        if len(self.asked) >= self._rounds:
            return None
        self.asked.append(way)
        return self._rule(way)


def test_a_usual_request_weighs_reading_and_writing() -> None:
    assert request(Costs(alone=0.02, crowd=0.01, reading=0.005)) == pytest.approx(400 * 0.005 + 100 * 0.02 + 100 * 0.01)
    assert single(Costs(alone=1, crowd=2, reading=3)) == 1
    assert batched(Costs(alone=1000, crowd=1, reading=1)) == 500


@pytest.mark.parametrize(
    ("ratios", "better", "decided"),
    [
        ([], False, False),
        ([0.5], False, False),
        ([0.5, 0.6], True, True),
        ([0.91, 0.91], True, False),
        ([0.95, 0.94], False, True),
        ([1.04], False, False),
        ([1.06], False, True),
        ([1.5, 0.5], False, False),
        ([0.5, 1.5, 0.5, 0.5, 0.5], False, True),
        ([0.8, 0.95, 0.8, 0.99, 0.8], True, True),
        ([0.93, 0.8, 0.94, 0.95, 0.7], False, True),
        ([1.3, 1.2], False, True),
    ],
)
def test_only_what_is_clearly_better_is_chosen(ratios: list[float], better: bool, decided: bool) -> None:
    pairs = [(flat(1.0), flat(ratio)) for ratio in ratios]
    assert is_better(pairs, request) is better
    assert is_decided(pairs, request) is decided


def test_pairs_are_measured_in_alternating_order_until_decided() -> None:
    clear = Clock(lambda way: flat(0.5 if way.flash else 1.0))
    assert measure_pairs(clear, WAY, OTHER, request) == [(flat(1.0), flat(0.5))] * FEWEST
    assert clear.asked == [WAY, OTHER, OTHER, WAY]
    close = Clock(lambda way: flat(0.9 if way.flash else 1.0))
    assert len(measure_pairs(close, WAY, OTHER, request)) == MOST


@pytest.mark.parametrize("rounds", range(5))
def test_half_a_pair_does_not_count(rounds: int) -> None:
    clock = Clock(lambda way: flat(0.5 if way.flash else 1.0), rounds)
    pairs = measure_pairs(clock, WAY, OTHER, request)
    assert len(pairs) == min(rounds // 2, FEWEST)
    assert all(pair == (flat(1.0), flat(0.5)) for pair in pairs)


def test_nothing_changes_where_all_ways_are_alike() -> None:
    found = calibrate(START, EVERYTHING, Clock(lambda _way: flat(0.01)))
    assert (found.layout, found.flash_short, found.flash_long) == ("split", True, False)
    assert (found.n_threads, found.n_threads_batch) == (8, 8)
    assert [(made.what, made.used, made.other) for made in found.comparisons] == [
        ("threads for one token", "8", "4"),
        ("threads for one token", "8", "7"),
        ("threads for batches", "8", "4"),
        ("threads for batches", "8", "7"),
        ("flash attention in long contexts", "off", "on"),
        ("layout", "split", "unified"),
        ("flash attention in short contexts", "on", "off"),
    ]
    assert not any(made.changed for made in found.comparisons)
    assert {(made.ratio, made.n_pairs) for made in found.comparisons} == {(1.0, FEWEST)}


def test_each_choice_builds_on_the_ones_before() -> None:
    def rule(way: Way) -> Costs:
        alone = {4: 0.010, 7: 0.015, 8: 0.02}[way.n_threads]
        reading = {4: 0.009, 7: 0.005, 8: 0.006}[way.n_threads_batch]
        factor = (0.8 if way.flash == way.deep else 1.0) * (0.7 if way.layout == "unified" and way.deep else 1.0)
        return Costs(alone=alone * factor, crowd=reading * factor, reading=reading * factor)

    clock = Clock(rule)
    found = calibrate(START, EVERYTHING, clock)
    assert (found.n_threads, found.n_threads_batch) == (4, 7)
    assert (found.layout, found.flash_short, found.flash_long) == ("unified", False, True)
    assert [made.what for made in found.comparisons if made.changed] == [
        "threads for one token",
        "threads for batches",
        "flash attention in long contexts",
        "layout",
        "flash attention in short contexts",
    ]
    assert clock.asked[-1] == Way("unified", True, 4, 7, False)
    assert (found.complete, found.comparisons[2].other) == (True, "4")


def test_decode_and_prefill_are_weighed_against_each_other() -> None:
    def better_at_reading(by: float) -> Callable[[Way], Costs]:
        return lambda way: Costs(alone=0.04 if way.flash else 0.02, crowd=0.02, reading=0.01 / (by if way.flash else 1))

    only_flash = Open(flash=True, layout=False, short=False)
    assert not calibrate(START, only_flash, Clock(better_at_reading(1.3))).flash_long
    assert calibrate(START, only_flash, Clock(better_at_reading(4.0))).flash_long


def test_what_is_settled_is_not_measured() -> None:
    clock = Clock(lambda way: flat(0.5 if way.flash else 1.0))
    found = calibrate(START, Open(flash=True, layout=False, short=False), clock)
    assert {(way.layout, way.n_threads, way.n_threads_batch) for way in clock.asked} == {("split", 8, 8)}
    assert (found.flash_short, found.flash_long) == (True, True)
    assert calibrate(START, Open(flash=False, layout=False, short=True), clock) == START
    assert Open(flash=False, layout=False, short=True).nothing


@pytest.mark.parametrize("rounds", range(0, 31, 3))
def test_what_there_was_no_time_for_is_left_to_the_next_start(rounds: int) -> None:
    def rule(way: Way) -> Costs:
        return flat(0.5 if way.layout == "unified" else 1.0)

    found = calibrate(START, EVERYTHING, Clock(rule, rounds))
    assert found.layout == ("unified" if rounds >= 24 else "split")
    assert (found.flash_short, found.flash_long, found.n_threads, found.n_threads_batch) == (True, False, 8, 8)
    assert (len(found.comparisons), found.complete) == (rounds // 4, rounds >= 28)
    rest = Clock(rule)
    whole = calibrate(START, EVERYTHING, rest, found.comparisons)
    assert whole == calibrate(START, EVERYTHING, Clock(rule))
    assert len(rest.asked) == 28 - 4 * len(found.comparisons)


def test_what_was_not_decided_is_not_written_down() -> None:
    found = calibrate(START, Open(flash=True, layout=False, short=False), Clock(lambda way: flat(0.9 if way.flash else 1), 8))
    assert (found.comparisons, found.complete, found.flash_long) == ((), False, False)


def test_a_comparison_under_other_circumstances_is_made_again() -> None:
    def rule(way: Way) -> Costs:
        return flat(0.5 if way.flash else 1.0)

    flash = Open(flash=True, layout=False, short=False)
    other = calibrate(replaced(START, flash_long=True), flash, Clock(rule)).comparisons
    again = Clock(rule)
    assert calibrate(START, flash, again, other).flash_long
    assert len(again.asked) == 4


def test_numbers_of_threads_to_try() -> None:
    assert thread_counts(1, 1) == thread_counts(2, 2) == ()
    assert thread_counts(2, 1) == (1,)
    assert thread_counts(16, 8) == (8, 15)
    assert thread_counts(16, 16) == thread_counts(16, 15) == (15,)


def test_the_choice_in_words() -> None:
    assert START.report() == "split layout, flash attention in short contexts, 8 threads; not measured"
    found = calibrate(START, EVERYTHING, Clock(lambda way: flat(0.5 if way.n_threads_batch == 4 else 1.0)))
    assert found.report().startswith("split layout, flash attention in short contexts, 8 threads, 4 for batches; ")
