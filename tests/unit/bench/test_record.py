from __future__ import annotations

import json

import pytest

from puna.bench.record import Record, error_text


def taken(*frames: object) -> Record:
    record = Record(start=1.0)
    for index, frame in enumerate(frames):
        if not record.take(frame if isinstance(frame, str) else json.dumps(frame), 2.0 + index):
            break
    record.end = 2.0 + len(frames)
    return record


def test_a_chat_stream() -> None:
    record = taken(
        {"choices": [{"delta": {"role": "assistant", "content": None}}]},
        {"choices": [{"delta": {"content": "a"}}], "usage": None},
        {"choices": [{"delta": {"content": "b"}}]},
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}}},
        "[DONE]",
    )
    assert (record.text, record.arrivals, record.tokens, record.ttft) == ("ab", [3.0, 4.0], 5, 2.0)
    assert (record.prompt_tokens, record.cached_tokens, record.error) == (9, 4, "")


def test_a_completion_stream_without_usage_counts_pieces() -> None:
    record = taken({"choices": [{"text": "a"}]}, {"choices": [{"text": ""}]}, {"choices": [{"text": "b"}]}, "[DONE]")
    assert (record.tokens, record.prompt_tokens, record.cached_tokens) == (2, 0, None)


def test_timings_tell_what_usage_does_not() -> None:
    record = taken({"choices": [{"text": "a"}], "timings": {"cache_n": 30, "prompt_n": 10, "predicted_n": 7}})
    assert (record.prompt_tokens, record.cached_tokens, record.tokens) == (40, 30, 7)


def test_usage_wins_over_timings() -> None:
    usage = {"prompt_tokens": 41, "completion_tokens": 8, "prompt_tokens_details": {"cached_tokens": 0}}
    record = taken({"choices": [], "usage": usage, "timings": {"cache_n": 30, "prompt_n": 10, "predicted_n": 7}})
    assert (record.prompt_tokens, record.cached_tokens, record.tokens) == (41, 0, 8)


@pytest.mark.parametrize(
    ("frame", "error"),
    [({"error": {"message": "boom"}}, "boom"), ({"error": "plain"}, "plain"), ("{broken", "not JSON: '{broken'")],
)
def test_an_error_ends_the_stream(frame: object, error: str) -> None:
    record = taken({"choices": [{"text": "a"}]}, frame, {"choices": [{"text": "never"}]})
    assert (record.text, record.error) == ("a", error)


def test_gaps_that_share_time_with_a_window() -> None:
    record = Record(arrivals=[1.0, 2.0, 4.0, 8.0])
    assert record.gaps() == [1.0, 2.0, 4.0]
    assert record.gaps(3.0, 3.5) == [2.0]
    assert record.gaps(2.0, 5.0) == [2.0, 4.0]
    assert record.gaps(8.0, 9.0) == []
    assert Record(arrivals=[1.0]).gaps() == []


def test_no_text_waits_until_the_end() -> None:
    assert Record(start=1.0, end=3.0).ttft == 2.0


def test_error_bodies_of_all_shapes() -> None:
    assert error_text({"error": {"message": "m"}}) == "m"
    assert error_text({"detail": "d"}) == "{'detail': 'd'}"
    assert len(error_text("x" * 1000)) == 200
