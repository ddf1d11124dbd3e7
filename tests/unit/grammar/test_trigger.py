"""A lazy grammar begins exactly at its trigger, however the text is cut into tokens."""

from __future__ import annotations

import pytest

from puna.grammar.trigger import LazyTrigger
from puna.types import Trigger

TEXT = 'sure 😀: <call>{"a":1}'
CASES = {
    "word": (Trigger("word", "<call>"), '<call>{"a":1}'),
    "pattern": (Trigger("pattern", r"\s*<call>"), ' <call>{"a":1}'),
    "group": (Trigger("pattern", r"\s*(<call>)\{"), '<call>{"a":1}'),
    "whole": (Trigger("pattern_full", r"[\s\S]*?(<call>)[\s\S]*"), '<call>{"a":1}'),
    "first character": (Trigger("word", "s"), TEXT),
    "a character of four bytes": (Trigger("word", "😀"), '😀: <call>{"a":1}'),
    "nowhere": (Trigger("word", "<none>"), None),
}


def run(trigger: Trigger, pieces: list[bytes]) -> bytes | None:
    """All text from the trigger on, that which follows it included."""
    lazy = LazyTrigger([trigger])
    for index, piece in enumerate(pieces):
        begun = lazy.feed(index + 100, piece)
        if begun is not None:
            return begun + b"".join(pieces[index + 1 :])
    return None


@pytest.mark.parametrize("name", CASES)
def test_every_split(name: str) -> None:
    trigger, wanted = CASES[name]
    data = TEXT.encode()
    expected = None if wanted is None else wanted.encode()
    assert run(trigger, [data]) == expected
    assert run(trigger, [bytes((byte,)) for byte in data]) == expected
    for first in range(len(data) + 1):
        for second in range(first, len(data) + 1):
            assert run(trigger, [data[:first], data[first:second], data[second:]]) == expected, (first, second)


def test_a_token_triggers_by_its_id() -> None:
    lazy = LazyTrigger([Trigger("token", "<call>", 7)])
    assert lazy.feed(1, b"<call>") is None
    assert lazy.feed(7, b"<call>") == b"<call>"


def test_of_several_the_first_in_the_list_counts() -> None:
    lazy = LazyTrigger([Trigger("word", "b"), Trigger("word", "a")])
    assert lazy.feed(1, b"xab") == b"b"
