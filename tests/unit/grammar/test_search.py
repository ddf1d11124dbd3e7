"""Expressions are searched for piece by piece as Python's engine searches the whole, in bounded time."""

from __future__ import annotations

import random
import re
import time

import pytest

from puna.grammar.search import RegexError, Search

PATTERNS = [
    *("ab", "a(b+)c", "(x)?(y)", "^a.*(b)", "[ab]+$", "(a|ab)(c|bcd)", "a{2,3}b", "(?:a|b)*?(c)", r"\d+(z)", r"^(\s*ab)"),
    *("(a*)(b)", "a|b|c", "()a", "a??b", r"(?:\w+) ", r"[\s\S]*?(ab)[\s\S]*", r"[^a-c]x", r"\x61\u0062", "(?P<name>a)b", "a{0}b"),
]


def expected(pattern: str, pieces: list[str], *, whole: bool) -> tuple[int, int] | None:
    """How many pieces it takes to find a match, and where that begins."""
    python, text = pattern.replace("$", r"\Z"), ""
    for count, piece in enumerate(pieces):
        text += piece
        found = re.fullmatch(python, text, re.ASCII) if whole else re.search(python, text, re.ASCII)
        if found:
            groups = [found.start(index) for index in range(1, found.re.groups + 1) if found.group(index)]
            return count, len(text[: groups[0] if groups else found.start()].encode())
    return None


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_searching_in_pieces(pattern: str, whole: bool) -> None:
    choose = random.Random(pattern)
    for _ in range(60):
        pieces = ["".join(choose.choices("abcxyzé1 \n", k=choose.randint(0, 4))) for _ in range(choose.randint(1, 6))]
        search = Search(pattern, whole=whole)
        found = None
        for count, piece in enumerate(pieces):
            start = search.feed(piece.encode())
            if start is not None:
                found = count, start
                break
        assert found == expected(pattern, pieces, whole=whole), pieces


def test_characters_may_be_cut() -> None:
    search = Search("é(b)")
    assert [search.feed(bytes((byte,))) for byte in "aéb".encode()] == [None, None, None, 3]


@pytest.mark.parametrize(
    "pattern", ["(", ")", "a)", "[a", "*", "a**", "(?=a)b", "(?<!a)b", r"\b", r"(a)\1", "[b-a]", "a{3,2}", "^*", "a{2000}", "\\"]
)
def test_what_cannot_be_followed_is_refused(pattern: str) -> None:
    with pytest.raises(RegexError):
        Search(pattern)


def test_hard_expressions_take_no_longer_than_others() -> None:
    begin = time.perf_counter()
    for pattern in ("(a+)+$", "(a|aa)*b", "(.*a.*){10}b"):
        search = Search(pattern)
        for _ in range(300):
            search.feed(b"aaaa")
    assert time.perf_counter() - begin < 5
    with pytest.raises(RegexError, match="too large"):
        Search("((a{100}){100}){100}")
