"""Figures from records. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from puna.bench.record import Record

Figures = Mapping[str, float]
"""Metric name to value; a metric that could not be measured is absent."""


@dataclass(frozen=True)
class Metric:
    """How a figure is called and shown."""

    label: str
    unit: str
    digits: int = 1
    more_is_better: bool = False


METRICS: Mapping[str, Metric] = {
    "tokens_s": Metric("tokens/s, all streams", "", more_is_better=True),
    "objects_s": Metric("objects/s", "", 2, more_is_better=True),
    "texts_s": Metric("texts/s, one by one", "", more_is_better=True),
    "listed_texts_s": Metric("texts/s, in lists", "", more_is_better=True),
    "documents_s": Metric("documents/s", "", more_is_better=True),
    "reply_p50": Metric("reply, p50", "ms", 0),
    "reply_p99": Metric("reply, p99", "ms", 0),
    "free_tokens_s": Metric("tokens/s, free text", "", more_is_better=True),
    "cold_tokens_s": Metric("tokens/s with prefill", "", more_is_better=True),
    "plain_edit_tokens_s": Metric("tokens/s, editing without drafts", "", more_is_better=True),
    "drafted_edit_tokens_s": Metric("tokens/s, editing with drafts", "", more_is_better=True),
    "edit_gain": Metric("drafts speed editing to", "x", 2, more_is_better=True),
    "plain_free_tokens_s": Metric("tokens/s, free text without drafts", "", more_is_better=True),
    "drafted_free_tokens_s": Metric("tokens/s, free text with drafts", "", more_is_better=True),
    "free_gain": Metric("drafts speed free text to", "x", 2, more_is_better=True),
    "prompt_tokens_s": Metric("prompt tokens/s", "", more_is_better=True),
    "busy_prompt_tokens_s": Metric("prompt tokens/s beside streams", "", more_is_better=True),
    "slowdown": Metric("prefill takes longer by", "%", 0),
    "ttft_p50": Metric("first token, p50", "ms", 0),
    "ttft_p99": Metric("first token, p99", "ms", 0),
    "gap_p99": Metric("gap, p99", "ms", 0),
    "quiet_gap_p99": Metric("gap while quiet, p99", "ms", 0),
    "busy_gap_p99": Metric("gap during prefill, p99", "ms", 0),
    "gap_growth": Metric("gap grows to", "x", 2),
    "wall": Metric("wall time", "s", 2),
    "cold_wall": Metric("wall time with prefill", "s", 2),
    "cached": Metric("prompt tokens from cache", "%", 0, more_is_better=True),
    "prompt_tokens": Metric("prompt tokens a request", "", 0),
    "output_tokens": Metric("tokens a request", "", 0),
    "cpu": Metric("watched process, of one core", "%", 0),
    "memory": Metric("watched process, memory", "MB", 0),
}
"""In the order of the tables."""


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the values lie, interpolated. Raises `ValueError` without values."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def of_streams(records: Sequence[Record]) -> dict[str, float]:
    """The usual figures of requests that ran side by side."""
    wall = max(record.end for record in records) - min(record.start for record in records)
    waits = [record.ttft * 1000 for record in records]
    gaps = [gap * 1000 for record in records for gap in record.gaps()]
    figures = {
        "tokens_s": sum(record.tokens for record in records) / wall,
        "ttft_p50": percentile(waits, 0.5),
        "ttft_p99": percentile(waits, 0.99),
        "wall": wall,
        "output_tokens": statistics.fmean(record.tokens for record in records),
    }
    if any(record.prompt_tokens for record in records):
        figures["prompt_tokens"] = statistics.fmean(record.prompt_tokens for record in records)
    if gaps:
        figures["gap_p99"] = percentile(gaps, 0.99)
    cached = cached_share(records)
    if cached is not None:
        figures["cached"] = cached
    return figures


def cached_share(records: Iterable[Record]) -> float | None:
    """Per cent of all prompt tokens that were taken from a cache; None if no server said."""
    told = [record for record in records if record.cached_tokens is not None and record.prompt_tokens]
    if not told:
        return None
    return 100 * sum(record.cached_tokens or 0 for record in told) / sum(record.prompt_tokens for record in told)


def medians(runs: Sequence[Figures]) -> dict[str, float]:
    """Each metric's median over the runs that have it."""
    names = [name for name in METRICS if any(name in run for run in runs)]
    return {name: statistics.median(run[name] for run in runs if name in run) for name in names}


def ratio(value: float | None, base: float | None) -> float | None:
    """`value` in terms of the first server's; None where either is missing or the base is 0."""
    return value / base if value is not None and base else None
