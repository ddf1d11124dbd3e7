"""Stretches of an output that triggers do not count in."""

from __future__ import annotations

import pytest

from puna.grammar.trigger import LazyTrigger
from puna.types import Span, Trigger

THINK = ("<think>", "</think>")
CASES = {
    "no thoughts": (Span(*THINK), "so <call>x", "<call>x"),
    "in thoughts": (Span(*THINK), "<think>a <call> b</think>c<call>x", "<call>x"),
    "blanks before": (Span(*THINK), " \n<think><call></think> <call>x", "<call>x"),
    "open": (Span(*THINK, open=True), "a <call></think><call>x", "<call>x"),
    "open for ever": (Span(*THINK, open=True), "a <call> b", None),
    "only once": (Span(*THINK), "a <think> <call>x</think>", "<call>x</think>"),
    "not again": (Span(*THINK), "<think>a</think><think><call>x", "<call>x"),
    "again": (Span(*THINK, again=True), "a<think>b<call></think>c<think><call></think>é<call>x", "<call>x"),
    "nearly a span": (Span(*THINK, again=True), "<thin<call>x", "<call>x"),
    "nearly a span at the start": (Span(*THINK), "<thin<call>x", "<call>x"),
    "across a span": (Span(*THINK, again=True), "<ca<think></think>ll><call>x", "<ca<think></think>ll><call>x"),
}
PATTERNS = {
    "first thing": (Span(*THINK), '{"name": 1', '{"name": 1'),
    "first thing behind thoughts": (Span(*THINK), '<think>\n{"name": </think>\n{"name": 1', '{"name": 1'),
    "not the first thing": (Span(*THINK), '<think></think>a {"name": 1', None),
}


def run(trigger: Trigger, pieces: list[bytes]) -> bytes | None:
    """All text from the trigger on."""
    lazy = LazyTrigger([trigger])
    for index, piece in enumerate(pieces):
        begun = lazy.feed(-1, piece)
        if begun is not None:
            return begun + b"".join(pieces[index + 1 :])
    return None


def check(trigger: Trigger, text: str, wanted: str | None) -> None:
    data = text.encode()
    expected = None if wanted is None else wanted.encode()
    assert run(trigger, [bytes((byte,)) for byte in data]) == expected
    for first in range(len(data) + 1):
        for second in range(first, len(data) + 1):
            pieces = [data[:first], data[first:second], data[second:]]
            assert run(trigger, [piece for piece in pieces if piece]) == expected, pieces


@pytest.mark.parametrize("name", CASES)
def test_a_word_counts_outside_of_spans(name: str) -> None:
    span, text, wanted = CASES[name]
    check(Trigger("word", "<call>", outside=span), text, wanted)


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_sees_what_is_left(name: str) -> None:
    span, text, wanted = PATTERNS[name]
    check(Trigger("pattern", r'^\s*(\{"name": )', outside=span), text, wanted)
