"""Saved states taken apart and put together: pure bytes."""

from __future__ import annotations

import numpy as np
import pytest

from puna.llama.state import State, StateFormatError, adapt, head


def u32(*numbers: int) -> bytes:
    return np.array(numbers, np.uint32).tobytes()


def made(
    *, stream: int, n_stream: int, transposed: bool, count: int = 5, width: int = 6, kind: int = 1, layers: int = 2
) -> State:
    """A state whose values are 0, 1, 2 ... in the order of cells."""
    element = {0: 4, 1: 2}[kind]
    own = u32(count) + b"".join(u32(position, 1, stream) for position in range(count)) + u32(transposed, layers)
    for layer in range(layers):
        own += u32(kind) + np.uint64(8).tobytes() + bytes([layer] * 8 * count)
    for layer in range(layers):
        values = (np.arange(count * width).reshape(count, width) + layer).astype(np.uint16 if element == 2 else np.uint32)
        head = u32(kind, element, width) if transposed else u32(kind) + np.uint64(width * element).tobytes()
        own += head + np.ascontiguousarray(values.T if transposed else values).tobytes()
    whole = u32(0xAF143CE1, stream, n_stream) + u32(*[0] * stream) + own + u32(*[0] * (n_stream - stream - 1))
    return np.frombuffer(whole, np.uint8)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("n_stream", [1, 2, 4, 9])
@pytest.mark.parametrize("stream", [0, 1, 3])
def test_any_form_becomes_any_other(stream: int, n_stream: int, transposed: bool, kind: int) -> None:
    state = made(stream=stream, n_stream=4, transposed=not transposed, kind=kind)
    adapted = adapt(state, n_stream=n_stream, transposed=transposed)
    expected = made(stream=0, n_stream=n_stream, transposed=transposed, kind=kind)
    if n_stream == 4:
        back = adapt(adapted, n_stream=4, transposed=not transposed)
        assert back[12:16].any() or stream
    own = adapted[12 : len(adapted) - 4 * (n_stream - 1)]
    wanted = expected[12 : len(expected) - 4 * (n_stream - 1)].copy()
    for cell in range(5):  # cells keep the id they were saved under, which the engine does not look at
        at = 4 + 12 * cell + 8
        wanted[at : at + 4] = own[at : at + 4]
    np.testing.assert_array_equal(own, wanted)


def test_what_fits_is_left_alone() -> None:
    state = made(stream=1, n_stream=3, transposed=True)
    assert adapt(state, n_stream=3, transposed=True) is state


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize("stream", [0, 2])
def test_the_head_of_a_state_is_the_state_of_a_shorter_sequence(stream: int, transposed: bool, kind: int) -> None:
    state = made(stream=stream, n_stream=4, transposed=transposed, kind=kind)
    shorter = made(stream=stream, n_stream=4, transposed=transposed, kind=kind, count=3)
    if transposed:  # the made values count up by cells, whatever their number
        np.testing.assert_array_equal(head(state, 3), shorter)
    assert len(head(state, 3)) == len(shorter)
    np.testing.assert_array_equal(
        adapt(head(state, 3), n_stream=4, transposed=not transposed), head(adapt(state, n_stream=4, transposed=not transposed), 3)
    )
    assert head(state, 5) is head(state, 9) is state


def test_the_head_takes_cells_by_their_position() -> None:
    state = made(stream=0, n_stream=1, transposed=False).copy()
    positions = state[16 : 16 + 60].view(np.uint32).reshape(5, 3)
    positions[:, 0] = [7, 0, 9, 1, 2]
    kept = head(state, 2)
    assert kept[16 : 16 + 24].view(np.uint32).reshape(2, 3)[:, 0].tolist() == [0, 1]
    assert kept[-24:].view(np.uint16).reshape(2, 6)[:, 0].tolist() == [7, 19]  # cells 1 and 3 of the second layer


@pytest.mark.parametrize("n", [0, 8, 11, 40, 100])
def test_a_head_of_short_bytes_is_refused(n: int) -> None:
    with pytest.raises(StateFormatError):
        head(made(stream=0, n_stream=2, transposed=True)[:n], 2)
    with pytest.raises(StateFormatError, match="below position 0"):
        head(made(stream=0, n_stream=2, transposed=True), 0)


@pytest.mark.parametrize("n", [0, 8, 11, 40, 100])
def test_short_bytes_are_refused(n: int) -> None:
    state = made(stream=0, n_stream=2, transposed=True)
    with pytest.raises(StateFormatError):
        adapt(state[:n], n_stream=2, transposed=False)


def test_quantized_values_cannot_be_turned() -> None:
    state = made(stream=0, n_stream=1, transposed=False).copy()
    at = int(np.flatnonzero(state.view(np.uint8) == 1)[0])
    assert at >= 0
    keys = 12 + 4 + 12 * 5 + 8 + 2 * (12 + 40)
    state[keys : keys + 4] = np.array([8], np.uint32).view(np.uint8)
    with pytest.raises(StateFormatError, match="type 8"):
        adapt(state, n_stream=1, transposed=True)


def test_left_over_bytes_are_refused() -> None:
    state = np.concatenate([made(stream=0, n_stream=1, transposed=True), np.zeros(4, np.uint8)])
    with pytest.raises(StateFormatError, match="left over"):
        adapt(state, n_stream=1, transposed=False)
