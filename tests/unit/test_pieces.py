"""Long texts cut into pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest

from puna.llama.pieces import PIECE, pieces

WORDS = " ".join(f"word{number}, and more:  " for number in range(2000))
MARK = "<|a mark|>"


@pytest.mark.parametrize("anywhere", [False, True])
@pytest.mark.parametrize(
    "text", ["", "a", "x" * PIECE, WORDS, "x" * 3 * PIECE, " " * 3 * PIECE, "\n" * PIECE + WORDS, "é😀" * PIECE]
)
def test_pieces_join_to_the_text(text: str, anywhere: bool) -> None:
    found = pieces(text, [MARK], anywhere=anywhere)
    assert "".join(found) == text
    assert len(found) == 1 or all(found)
    if anywhere:
        assert all(len(piece) <= PIECE for piece in found)


def test_cuts_are_before_blanks_between_words() -> None:
    found = pieces(WORDS, [], anywhere=True)
    assert len(found) > 5
    for before, after in pairwise(found):
        assert before[-1].isalnum() and after[0] == " " and after[1].isalnum()


def test_without_a_blank_a_piece_goes_on_to_the_next_one() -> None:
    text = "x" * 2 * PIECE + " y" + "z" * PIECE
    assert pieces(text, [], anywhere=False) == ["x" * 2 * PIECE, " y" + "z" * PIECE]


@pytest.mark.parametrize("shift", range(len(MARK) + 2))
def test_no_mark_is_cut(shift: int) -> None:
    for text in ("x" * (PIECE - shift) + MARK + "x" * PIECE, "a b" + "x" * (PIECE - 4 - shift) + MARK + " b" * PIECE):
        for anywhere in (False, True):
            assert sum(piece.count(MARK) for piece in pieces(text, [MARK], anywhere=anywhere)) == 1


def test_marks_everywhere_leave_no_room_for_a_cut() -> None:
    assert "".join(pieces("ab" * PIECE, ["ab", "ba"], anywhere=True)) == "ab" * PIECE
