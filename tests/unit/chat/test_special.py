"""Control-token texts are found wherever they are, and whole strings are told from the halves of one."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puna.chat import SpecialTexts

CHATML = SpecialTexts(["<|im_start|>", "<|im_end|>", "</s>", "<s>", "[INST]", "[/INST]", "§", ""])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("plain <b> [x] <|im", []),
        ("<|im_start|>", ["<|im_start|>"]),
        ("a<|im_start|>b<|im_end|><s></s>c", ["<|im_start|>", "<|im_end|>", "<s>", "</s>"]),
        ("<<|im_end|>>", ["<|im_end|>"]),
        ("<|im_<|im_end|>", ["<|im_end|>"]),
        ("[INST][/INST][[INST]", ["[INST]", "[/INST]", "[INST]"]),
        ("a§b§", ["§", "§"]),
    ],
)
def test_find(text: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in CHATML.find(text)] == found


def test_the_longest_wins() -> None:
    special = SpecialTexts(["<a", "<a>", "<a>b", "<"])
    assert special.find("<a>b <<a") == [(0, 4), (5, 6), (6, 8)]


@given(st.lists(st.sampled_from(["<s>", "</s>", "<|im_end|>", "<", "s", ">", "|", "im_end", "x", "§"]), max_size=12))
def test_find_equals_a_plain_scan(pieces: list[str]) -> None:
    text = "".join(pieces)
    expected = []
    place = 0
    while place < len(text):
        length = max((len(token) for token in CHATML.texts if text.startswith(token, place)), default=0)
        if length:
            expected.append((place, place + length))
        place += length or 1
    assert CHATML.find(text) == expected


@pytest.mark.parametrize(
    ("text", "loose"),
    [
        ("nothing loose", []),
        ("text <|im_", ["<|im_"]),
        ("text <|im_ \n", ["<|im_"]),
        ("start|> text", ["start|>"]),
        ("\n start|> text <", ["start|>", "<"]),
        ("x start|> text", []),
        ("<|im_ text", []),
        ("a < b", []),
        ("end|>", ["end|>"]),
    ],
)
def test_loose_ends(text: str, loose: list[str]) -> None:
    assert [text[start:end] for start, end in CHATML.loose_ends(text)] == loose


def test_no_special_texts_find_nothing() -> None:
    none = SpecialTexts()
    assert none.find("<s>") == []
    assert none.loose_ends("<") == []


def test_thousands_of_control_tokens_are_cheap() -> None:
    special = SpecialTexts(f"<unused{number}>" for number in range(6000))
    text = "if a < b and b <unused c>: <unused7> " * 3000
    start = time.thread_time()
    assert len(special.find(text)) == 3000
    assert time.thread_time() - start < 1
