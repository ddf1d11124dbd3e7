"""What a full context drops."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from puna.engine.shift import choose_shift


def shift(n_keep: int, n_discard: int, *, add_bos: bool = False) -> tuple[int, int]:
    return choose_shift(100, 100, n_prompt=30, n_keep=n_keep, n_discard=n_discard, add_bos=add_bos)


def test_half_of_what_may_go_goes() -> None:
    assert shift(0, 0) == (0, 50)
    assert shift(20, 0) == (20, 40)
    assert shift(0, 0, add_bos=True) == (1, 49)


def test_the_request_may_say_otherwise() -> None:
    assert shift(-1, 0) == (30, 35)
    assert shift(-1, 0, add_bos=True) == (30, 35)
    assert shift(10, 7) == (10, 7)


def test_a_shift_always_has_something_to_drop() -> None:
    assert shift(1000, 0) == (96, 2)
    assert shift(0, 1000) == (0, 100)


@given(st.integers(1, 300), st.integers(8, 300), st.integers(1, 300), st.integers(-1, 400), st.integers(0, 400), st.booleans())
def test_bounds(n: int, n_ctx: int, n_prompt: int, n_keep: int, n_discard: int, add_bos: bool) -> None:
    keep, discard = choose_shift(n, n_ctx, n_prompt=n_prompt, n_keep=n_keep, n_discard=n_discard, add_bos=add_bos)
    assert 0 <= keep < n
    assert 1 <= discard <= n - keep
