"""Saved states taken apart and put together: pure bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from puna.llama.state import Rows, State, StateFormatError, StateShape, adapt, cut, learn, put_together, stretch, take_apart
from tests.unit.engine.states import make_shape, make_state

TOKENS = (11, 12, 13, 14, 15)
NOTHING: State = np.zeros(0, np.uint8)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("n_stream", [1, 2, 4, 9])
@pytest.mark.parametrize("stream", [0, 1, 3])
def test_any_form_becomes_any_other(stream: int, n_stream: int, transposed: bool, kind: int) -> None:
    state = make_state(TOKENS, stream=stream, n_stream=4, transposed=not transposed, kind=kind)
    shape = make_shape(kind=kind)
    adapted = adapt(state, shape, 99, n_stream=n_stream, transposed=transposed)
    expected = make_state(TOKENS, n_stream=n_stream, transposed=transposed, kind=kind).copy()
    # cells keep the id they were saved under, which the engine does not look at
    cells = expected[8 + 4 + 4 : 8 + 4 + 4 + 12 * len(TOKENS)].reshape(-1, 12)
    cells[:, 8:] = np.array([stream], np.uint32).view(np.uint8)
    np.testing.assert_array_equal(adapted, expected)


def test_what_fits_is_left_alone() -> None:
    state = make_state(TOKENS, stream=1, n_stream=3)
    assert adapt(state, make_shape(), 99, n_stream=3, transposed=True) is state


@given(order=st.permutations(range(6)), length=st.integers(1, 7))
@pytest.mark.parametrize("transposed", [True, False])
def test_only_the_wanted_beginning_is_taken(transposed: bool, order: list[int], length: int) -> None:
    tokens = (5, 6, 7, 8, 9, 10)
    state = make_state(tokens, order=order, n_stream=2, transposed=transposed)
    adapted = adapt(state, make_shape(), length, n_stream=1, transposed=True)
    rows, tail = take_apart(adapted, make_shape())
    assert rows is not None
    assert rows.positions.tolist() == list(range(min(length, 6)))
    again = put_together([cut(rows, 0, rows.count)], rows.count, tail, make_shape())
    np.testing.assert_array_equal(again, make_state(tokens[:length]))


@pytest.mark.parametrize("transposed", [True, False])
def test_a_stretched_state_repeats_its_cells(transposed: bool) -> None:
    state = make_state(TOKENS, stream=1, n_stream=3, transposed=transposed)
    long = stretch(state, make_shape(), 12)
    assert len(long) == len(make_state(tuple(range(12)), stream=1, n_stream=3, transposed=transposed))
    rows, _ = take_apart(long, make_shape())
    short, _ = take_apart(state, make_shape())
    assert rows is not None and short is not None
    assert rows.positions.tolist() == list(range(12))
    for begin, end in ((0, 5), (5, 10), (10, 12)):
        np.testing.assert_array_equal(rows.keys[1][begin:end], short.keys[1][: end - begin])
        np.testing.assert_array_equal(rows.values[1][:, begin:end], short.values[1][:, : end - begin])
    with pytest.raises(StateFormatError, match="tail"):
        stretch(make_state(TOKENS, tail=b"tail"), make_shape(tail=b"tail"), 9)


def test_a_beginning_of_nothing_is_refused_and_a_tail_belongs_to_all() -> None:
    with pytest.raises(StateFormatError, match="below position 0"):
        adapt(make_state(TOKENS), make_shape(), 0, n_stream=1, transposed=True)
    tailed = make_state(TOKENS, tail=b"tail")
    assert adapt(tailed, make_shape(tail=b"tail"), 2, n_stream=1, transposed=True) is tailed


@settings(max_examples=25)
@given(
    cuts=st.sets(st.integers(1, 8), max_size=4), length=st.integers(1, 9), turned=st.lists(st.booleans(), min_size=5, max_size=5)
)
@pytest.mark.parametrize("extended", [True, False])
@pytest.mark.parametrize("tail", [b"", b"the tail"])
@pytest.mark.parametrize("values", [0, 1, 2])
def test_ranges_join_to_what_they_were_cut_from(
    extended: bool, tail: bytes, values: int, cuts: set[int], length: int, turned: list[bool]
) -> None:
    """Wherever they are cut, however their values lie, and however many of them are taken."""
    more = {"extended": extended, "tail": tail, "values": values}
    shape = make_shape(**more)
    tokens = tuple(range(20, 29))
    edges = [0, *sorted(cuts), 9]
    pieces = []
    for start, stop, transposed in zip(edges, edges[1:], turned, strict=False):
        state = make_state(tokens, transposed=transposed, **more)  # type: ignore[arg-type]  # passed on
        rows, rest = take_apart(state, shape)
        assert rows is not None and bytes(rest) == tail
        pieces.append(cut(rows, start, stop))
    last = turned[next(i for i, stop in enumerate(edges[1:]) if stop >= length)]
    joined = put_together(pieces, length, np.frombuffer(tail, np.uint8), shape)
    expected = make_state(tokens[:length], transposed=last, **more)  # type: ignore[arg-type]  # passed on
    np.testing.assert_array_equal(joined, expected)


@given(st.permutations(range(6)))
def test_cells_in_any_order_are_put_in_theirs(order: list[int]) -> None:
    tokens = (5, 6, 7, 8, 9, 10)
    shape = make_shape()
    rows, tail = take_apart(make_state(tokens, order=order), shape)
    assert rows is not None
    np.testing.assert_array_equal(put_together([cut(rows, 0, 6)], 6, tail, shape), make_state(tokens))


@pytest.mark.parametrize("positions", [(1, 2, 3, 4, 5), (0, 1, 2, 3, 5), (0, 1, 2, 2, 4)])
def test_other_positions_than_those_of_a_beginning_are_refused(positions: tuple[int, ...]) -> None:
    state = make_state(TOKENS).copy()
    heads = state[16 : 16 + 12 * 5].reshape(5, 12)
    heads[:, :4] = np.array(positions, np.uint32).view(np.uint8).reshape(5, 4)
    with pytest.raises(StateFormatError, match="positions"):
        take_apart(state, make_shape())


def test_a_purely_recurrent_state_is_a_tail() -> None:
    state = np.frombuffer(b"magic---" + b"running state", np.uint8)
    shape = learn(state, len(state) - 8)
    assert shape == StateShape(b"magic---", 0, 0, 0, True)
    rows, tail = take_apart(state, shape)
    assert rows is None
    np.testing.assert_array_equal(put_together([], 0, tail, shape), state)
    assert adapt(state, shape, 99, n_stream=9, transposed=True) is state


@pytest.mark.parametrize("n", [0, 8, 11, 40, 100])
def test_short_bytes_are_refused(n: int) -> None:
    state = make_state(TOKENS, n_stream=2)[:n]
    with pytest.raises(StateFormatError):
        adapt(state, make_shape(), 99, n_stream=2, transposed=False)
    with pytest.raises(StateFormatError):
        take_apart(state, make_shape())


def test_quantized_rows_are_cut_but_not_turned() -> None:
    state = make_state(TOKENS, transposed=False, layers=1).copy()
    for at in (len(state) - 5 * 12 - 12, len(state) - 5 * 12 - 12 - 5 * 8 - 12):
        assert state[at] == 1
        state[at] = 8
    shape = learn(state, 0)
    rows, tail = take_apart(state, shape)
    assert rows is not None
    np.testing.assert_array_equal(put_together([cut(rows, 0, 2), cut(rows, 2, 5)], 5, tail, shape), state)
    with pytest.raises(StateFormatError, match="type 8"):
        adapt(state, shape, 99, n_stream=1, transposed=True)


def test_left_over_and_missing_tails_are_refused() -> None:
    with pytest.raises(StateFormatError, match="left over"):
        take_apart(make_state(TOKENS, tail=b"more"), make_shape())
    with pytest.raises(StateFormatError):
        take_apart(make_state(TOKENS), make_shape(tail=b"more"))


def test_too_few_rows_are_refused() -> None:
    shape = make_shape()
    rows, tail = take_apart(make_state(TOKENS), shape)
    assert rows is not None
    with pytest.raises(StateFormatError, match="fewer"):
        put_together([cut(rows, 0, 3)], 4, tail, shape)
    with pytest.raises(StateFormatError, match="fewer"):
        put_together([], 0, tail, shape)


def test_bytes_of_no_known_shape_are_not_learnt() -> None:
    with pytest.raises(StateFormatError):
        learn(np.frombuffer(bytes(range(1, 201)), np.uint8), 0)
    with pytest.raises(StateFormatError):
        learn(make_state(TOKENS)[:-1], 0)


def test_every_altered_count_is_noticed() -> None:
    """No change to what says how the bytes lie gives rows of another place."""
    state, shape = make_state(TOKENS), make_shape()
    for at in (8, 12, 20, 76, 80):
        altered = state.copy()
        altered[at] += 1
        with pytest.raises(StateFormatError):
            take_apart(altered, shape)


def test_pieces_hold_nothing_but_their_own_bytes() -> None:
    state = make_state(tuple(range(1000)))
    rows, _ = take_apart(state, make_shape())
    assert rows is not None
    piece = cut(rows, 10, 20)
    assert piece.base is None
    assert piece.nbytes < 12 + 10 * (12 + 2 * (8 + 12)) + 4 * 12 + 1
    assert Rows(piece, make_shape()).count == 10
