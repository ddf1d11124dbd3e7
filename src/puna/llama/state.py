"""The bytes of a saved sequence, as far as they have to be understood. Source: libllama's `llama_kv_cache::state_write`.

    magic, sequence id, number of streams          32 bits each
    for every stream its number of cells           32 bits; all but the sequence's own have none
    and behind the count that is not zero:
        for every cell position, 1, sequence id    32 bits each
        transposed?, number of layers              32 bits each
        for every layer the keys                   type (32 bits), bytes a row (64 bits), a row a cell
        for every layer the values                 likewise, or transposed:
                                                   type, bytes an element, elements a cell (32 bits), a row an element

Values lie transposed without flash attention. All this holds for plain attention memory; other kinds keep more.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

State = npt.NDArray[np.uint8]

HEAD = 8
"""Bytes before the number of streams."""

CELL = 12
"""Bytes of a cell's position and sequence."""

ELEMENT_BYTES = {0: 4, 1: 2, 30: 2}
"""Types whose elements stand alone (f32, f16, bf16), so that values of that type can be transposed."""


class StateFormatError(ValueError):
    """The bytes are not laid out as expected."""


def adapt(state: State, *, n_stream: int, transposed: bool) -> State:
    """The same state for a context with another number of streams, or with its values the other way round.

    Raises `StateFormatError` for bytes that are not understood; then nothing can be made of the state.
    """
    old = _number(state, HEAD)
    begin, end = _own_part(state)
    own = state[begin:end]
    turned = _turn(own) if _is_transposed(own) != transposed else own
    if turned is own and old == n_stream:
        return state
    made = np.zeros(HEAD + 4 + len(turned) + 4 * (n_stream - 1), np.uint8)
    made[:HEAD] = state[:HEAD]
    made[HEAD : HEAD + 4] = _bytes(n_stream, np.uint32)
    made[HEAD + 4 : HEAD + 4 + len(turned)] = turned
    return made


def head(state: State, length: int) -> State:
    """The same state with only the cells at positions below `length`.

    Raises `StateFormatError` for bytes that are not understood, or when there is no such cell.
    """
    begin, end = _own_part(state)
    own = state[begin:end]
    count = _number(own, 0)
    at = 4 + CELL * count
    transposed, n_layer = _is_transposed(own), _number(own, at + 4)
    kept = own[4:at].view(np.uint32).reshape(count, CELL // 4)[:, 0] < length
    n_kept = int(kept.sum())
    if n_kept == count:
        return state
    if not n_kept:
        raise StateFormatError(f"a state without cells below position {length}")
    parts = [state[:begin], _bytes(n_kept, np.uint32), own[4:at].reshape(count, CELL)[kept].reshape(-1), own[at : at + 8]]
    at += 8
    for block in range(2 * n_layer):  # the keys of every layer, then the values of every layer
        turned = transposed and block >= n_layer
        row = _number(own, at + 4)
        size = count * row * (_number(own, at + 8) if turned else 1)
        data = own[at + 12 : at + 12 + size]
        if len(data) != size:
            raise StateFormatError("rows are cut short")
        rows = data.reshape(-1, count, row)[:, kept]
        parts += [own[at : at + 12], np.ascontiguousarray(rows).reshape(-1)]
        at += 12 + size
    if at != len(own):
        raise StateFormatError(f"{len(own) - at} bytes are left over")
    return np.concatenate([*parts, state[end:]])


def _own_part(state: State) -> tuple[int, int]:
    """Where the sequence's own stream begins, with its count of cells, and ends."""
    n_stream = _number(state, HEAD)
    counts = [_number(state, HEAD + 4 + 4 * i) for i in range(n_stream)]
    used = [i for i, count in enumerate(counts[: _first(counts) + 1]) if count]
    if len(used) != 1:
        raise StateFormatError("a state without cells")
    return HEAD + 4 + 4 * used[0], len(state) - 4 * (n_stream - used[0] - 1)


def _first(counts: list[int]) -> int:
    """Index of the first stream that has cells: what stands behind its count are cells, not counts."""
    return next((i for i, count in enumerate(counts) if count), len(counts))


def _is_transposed(own: State) -> bool:
    flag = _number(own, 4 + CELL * _number(own, 0))
    if flag > 1:
        raise StateFormatError("cells with more than a position")
    return bool(flag)


def _turn(own: State) -> State:
    """Transpose the values of one stream's part."""
    count = _number(own, 0)
    at = 4 + CELL * count
    transposed, n_layer = _number(own, at), _number(own, at + 4)
    keys = at + 8
    for _ in range(n_layer):
        keys += 12 + count * _number(own, keys + 4)
    parts = [own[:at], _bytes(1 - transposed, np.uint32), own[at + 4 : keys]]
    at = keys
    for _ in range(n_layer):
        kind = _number(own, at)
        if kind not in ELEMENT_BYTES:
            raise StateFormatError(f"values of type {kind} cannot be transposed")
        element = ELEMENT_BYTES[kind]
        width = _number(own, at + 8) if transposed else _number(own, at + 4) // element
        size = count * width * element
        cells = own[at + 12 : at + 12 + size]
        if len(cells) != size:
            raise StateFormatError("values are cut short")
        shape = (width, count, element) if transposed else (count, width, element)
        turned = np.ascontiguousarray(cells.reshape(shape).swapaxes(0, 1)).reshape(-1)
        row = _bytes(width * element, np.uint64) if transposed else _bytes((element, width), np.uint32)
        parts += [own[at : at + 4], row, turned]
        at += 12 + size
    if at != len(own):
        raise StateFormatError(f"{len(own) - at} bytes are left over")
    return np.concatenate(parts)


def _number(state: State, at: int) -> int:
    if at + 4 > len(state):
        raise StateFormatError("the state is cut short")
    return int(state[at : at + 4].view(np.uint32)[0])


def _bytes(value: int | tuple[int, ...], kind: type[np.uint32] | type[np.uint64]) -> State:
    return np.atleast_1d(np.array(value, kind)).view(np.uint8)
