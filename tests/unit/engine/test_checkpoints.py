"""Where checkpoints lie."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from puna.engine.checkpoints import APART, BEFORE_END, EVERY, choose_checkpoints


def test_the_places() -> None:
    assert choose_checkpoints(100, n_known=0, n_shared=0) == [92]
    assert choose_checkpoints(100, n_known=0, n_shared=60) == [60, 92]
    assert choose_checkpoints(100, n_known=50, n_shared=60) == [92], "it would spare too little"
    assert choose_checkpoints(100, n_known=0, n_shared=100) == [92]
    assert choose_checkpoints(100, n_known=97, n_shared=97) == []
    assert choose_checkpoints(3, n_known=0, n_shared=0) == []
    assert choose_checkpoints(2 * EVERY + 50, n_known=0, n_shared=0) == [EVERY, 2 * EVERY + 42]
    assert choose_checkpoints(3 * EVERY, n_known=EVERY, n_shared=EVERY) == [2 * EVERY, 3 * EVERY - 8]


@given(st.integers(1, 20_000), st.integers(0, 20_000), st.integers(0, 20_000))
def test_they_lie_in_what_is_to_be_read(n_prompt: int, n_known: int, n_shared: int) -> None:
    chosen = choose_checkpoints(n_prompt, n_known=n_known, n_shared=n_shared)
    assert chosen == sorted(set(chosen))
    assert all(max(0, n_known) < length <= n_prompt - BEFORE_END for length in chosen)
    regular = [length for length in chosen if length not in (n_shared, n_prompt - BEFORE_END)]
    assert all(length % EVERY == 0 and length >= n_known + APART for length in regular)
