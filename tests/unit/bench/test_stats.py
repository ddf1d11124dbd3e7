from __future__ import annotations

import pytest

from puna.bench import prompts
from puna.bench.record import Record
from puna.bench.stats import cached_share, medians, of_streams, percentile, ratio


def test_percentiles() -> None:
    assert percentile([3.0], 0.99) == 3.0
    assert percentile([4.0, 1.0, 3.0, 2.0], 0.5) == 2.5
    assert percentile([float(n) for n in range(101)], 0.99) == 99.0
    assert percentile([1.0, 2.0], 0.0) == 1.0
    assert percentile([1.0, 2.0], 1.0) == 2.0
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_figures_of_streams() -> None:
    one = Record(start=0.0, end=4.0, arrivals=[1.0, 2.0, 4.0], completion_tokens=3, prompt_tokens=10, cached_tokens=5)
    two = Record(start=1.0, end=5.0, arrivals=[4.0, 5.0], completion_tokens=2, prompt_tokens=30, cached_tokens=5)
    figures = of_streams([one, two])
    assert figures["tokens_s"] == 1.0
    assert figures["wall"] == 5.0
    assert figures["ttft_p50"] == 2000.0
    assert figures["gap_p99"] == pytest.approx(1980.0)
    assert figures["cached"] == 25.0
    assert (figures["prompt_tokens"], figures["output_tokens"]) == (20.0, 2.5)


def test_what_was_not_told_is_left_out() -> None:
    figures = of_streams([Record(start=0.0, end=1.0, arrivals=[0.5])])
    assert not figures.keys() & {"cached", "gap_p99", "prompt_tokens"}
    assert cached_share([Record(cached_tokens=3, prompt_tokens=0)]) is None


def test_medians_over_the_runs_that_have_a_figure() -> None:
    assert medians([{"wall": 1.0}, {"wall": 5.0, "cached": 7.0}, {"wall": 2.0}]) == {"wall": 2.0, "cached": 7.0}
    assert medians([]) == {}


def test_ratios() -> None:
    assert ratio(3.0, 2.0) == 1.5
    assert ratio(None, 2.0) is ratio(1.0, None) is ratio(1.0, 0.0) is None


def test_prompts_depend_on_their_seed_alone() -> None:
    assert prompts.words(50, (1, "a", 2)) == prompts.words(50, (1, "a", 2))
    assert len(prompts.words(50, (1,)).split()) == 50
    assert len(set(prompts.WORDS)) == len(prompts.WORDS)


def test_prompts_of_different_seeds_share_no_long_prefix() -> None:
    many = [prompts.words(40, (7, "streams16", run, index)).split() for run in range(3) for index in range(16)]
    assert len({tuple(words[:5]) for words in many}) == len(many)
