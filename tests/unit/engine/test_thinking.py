"""Thinking that ends: by itself, when its tokens are spent, when somebody has heard enough; and once more after a restart."""

from __future__ import annotations

import pytest

from puna.engine.thinking import ThinkingTracker
from puna.types import Thinking

BEGIN, END = "<think>", "</think>"


def thinking(budget: int = -1, *, open: bool = False, message: str = "") -> Thinking:
    """One token a byte."""
    return Thinking(begin=BEGIN, end=END, open=open, budget=budget, close=tuple(b"</think>"), message=tuple(message.encode()))


def run(tracker: ThinkingTracker, wanted: bytes, n: int = 200) -> bytes:
    """What comes of an answer that wants to be `wanted`, followed by full stops, `n` tokens long."""
    written = b""
    rest = iter(wanted)
    while len(written) < n:
        due = tracker.due
        token = due if due is not None else next(rest, ord("."))
        written += bytes([token])
        tracker.feed(token, bytes([token]))
    return written


@pytest.mark.parametrize(
    "budget, wanted, written",
    [
        (-1, b"<think>long thoughts</think>answer", b"<think>long thoughts</think>answer"),
        (4, b"<think>long thoughts", b"<think>long</think> thoughts"),
        (4, b"<think>ok</think>answer", b"<think>ok</think>answer"),
        (0, b"<think>long", b"<think></think>long"),
        (6, b"no thoughts at all", b"no thoughts at all"),
        # The budget is the answer's: what is left of it after the first thoughts is for the next.
        (6, b"<think>abcd</think>x<think>efgh", b"<think>abcd</think>x<think>ef</think>gh"),
        (4, b"<think>abcd<think>efgh", b"<think>abcd</think><think></think>efgh"),
    ],
)
def test_the_budget(budget: int, wanted: bytes, written: bytes) -> None:
    # The end's own tokens are thinking too, as long as it is not whole.
    spare = len(END) - 1 if b"ok</think>" in wanted or b"abcd</think>" in wanted else 0
    limit = budget + spare if budget > 0 else budget
    assert run(ThinkingTracker(thinking(limit)), wanted).rstrip(b".") == written


def test_thinking_that_the_prompt_opened() -> None:
    assert run(ThinkingTracker(thinking(3, open=True)), b"abcdef").startswith(b"abc</think>def")
    assert run(ThinkingTracker(thinking(0, open=True)), b"abc").startswith(b"</think>abc")


def test_the_message_comes_where_thinking_is_cut_short_and_only_once() -> None:
    tracker = ThinkingTracker(thinking(2, message=" Enough."))
    assert run(tracker, b"<think>abcd<think>x").rstrip(b".") == b"<think>ab Enough.</think>cd<think></think>x"
    assert run(ThinkingTracker(thinking(20, message="!")), b"<think>a</think>b").rstrip(b".") == b"<think>a</think>b"


def test_a_character_is_finished_first_but_not_waited_for_for_ever() -> None:
    text = "<think>😀😀".encode()
    assert run(ThinkingTracker(thinking(2)), text).rstrip(b".") == "<think>😀</think>😀".encode()
    broken = run(ThinkingTracker(thinking(1)), b"<think>" + b"\xf0" * 50)
    assert broken.index(b"</think>") == len(b"<think>") + 1 + 4


def test_a_stop_ends_present_and_later_thinking() -> None:
    tracker = ThinkingTracker(thinking(message="So:"))
    for token in b"<think>abc":
        tracker.feed(token, bytes([token]))
    tracker.stop()
    assert run(tracker, b"d<think>e").rstrip(b".") == b"So:</think>d<think></think>e"
    before = ThinkingTracker(thinking())
    before.stop()
    assert run(before, b"<think>abc").rstrip(b".") == b"<think></think>abc"


STOPPED = b"<think>tho"


def fed(spec: Thinking, written: bytes, stop_at: int = -1) -> ThinkingTracker:
    """A tracker after these tokens; `stop_at` of them had come when somebody had heard enough."""
    tracker = ThinkingTracker(spec)
    for index, token in enumerate(written):
        if index == stop_at:
            tracker.stop()
        tracker.feed(token, bytes([token]))
    if len(written) == stop_at:
        tracker.stop()
    return tracker


@pytest.mark.parametrize("message", ["", "Now."])
def test_after_a_restart_a_stopped_answer_goes_on_where_it_was(message: str) -> None:
    """A new worker is told the tokens so far, and that somebody had heard enough, but not when."""
    spec = thinking(message=message)
    whole = STOPPED + run(fed(spec, STOPPED, len(STOPPED)), b"x<think>more<think>", 60)
    assert whole.rstrip(b".") == STOPPED + message.encode() + b"</think>x<think></think>more<think></think>"
    for cut in range(len(STOPPED), len(whole)):
        resumed = fed(spec, whole[:cut], cut)
        assert resumed.due == fed(spec, whole[:cut], len(STOPPED)).due, whole[:cut]


def test_an_ending_that_is_not_written_is_given_up() -> None:
    tracker = ThinkingTracker(thinking(2))
    for token in b"<think>ab":
        tracker.feed(token, bytes([token]))
    assert tracker.due == ord("<")
    tracker.feed(ord("c"), b"c")
    assert tracker.due is None
    assert run(tracker, b"d</think>e<think>f").rstrip(b".") == b"d</think>e<think></think>f"
