"""Runs that a prompt has in common with a stored one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from puna.engine.chunks import Chunk, find_chunks


def ids(text: str) -> list[int]:
    return list(map(ord, text))


TOKENS = st.lists(st.integers(0, 3), max_size=30)


def test_what_was_left_out_is_passed_over() -> None:
    stored = ids("BOSabcXXXdefYYghij")
    assert find_chunks(stored, ids("BOSabcdefghij"), 6, 3) == [Chunk(9, 6, 3), Chunk(14, 9, 4)]
    assert find_chunks(stored, ids("BOSabcdefghij"), 6, 4) == []
    assert find_chunks(stored, ids("BOSghij"), 3, 2) == [Chunk(14, 3, 4)]


def test_what_is_new_in_between_ends_it() -> None:
    assert find_chunks(ids("abcdef"), ids("abNEWcdef"), 2, 2) == []


@given(TOKENS, TOKENS, st.integers(0, 5))
def test_chunks_lengthen_the_beginning(stored: list[int], prompt: list[int], least: int) -> None:
    start = next((i for i, (a, b) in enumerate(zip(stored, prompt, strict=False)) if a != b), min(len(stored), len(prompt)))
    reached, source = start, start
    for chunk in find_chunks(stored, prompt, start, least):
        assert chunk.target == reached <= chunk.source >= source
        assert chunk.count >= max(1, least)
        part = stored[chunk.source : chunk.source + chunk.count]
        assert part == prompt[chunk.target : chunk.target + chunk.count]
        assert len(part) == chunk.count
        reached, source = chunk.target + chunk.count, chunk.source + chunk.count
