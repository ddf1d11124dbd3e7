"""The bytes of a saved sequence, as far as they have to be understood. Source: libllama's `llama_kv_cache::state_write`.

    magic, sequence id, number of streams          32 bits each
    for every stream its number of cells           32 bits; all but the sequence's own have none
    and behind the count that is not zero:
        for every cell position, 1, sequence id    32 bits each; some models have 96 more before the sequence id
        transposed?, number of layers              32 bits each
        for every layer the keys                   type (32 bits), bytes a row (64 bits), a row a cell
        for every layer that has any, the values   likewise, or transposed:
                                                   type, bytes an element, elements a cell (32 bits), a row an element

Values lie transposed without flash attention. Models with a sliding window or a running state have more behind all this,
which belongs to the end of the sequence and cannot be cut: its `tail`. A purely recurrent model has a tail only.

A state can be taken apart into rows of any range of its cells, and rows of adjoining ranges put together again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

State = npt.NDArray[np.uint8]

HEAD = 8
"""Bytes before the number of streams."""

CELLS = (12, 24)
"""Bytes that a cell's position and sequence take, without and with a place in a picture or a token id."""

TABLE = 12
"""Bytes before a layer's keys or values."""

ELEMENTS: dict[int, np.dtype[np.unsignedinteger[Any]]] = {0: np.dtype(np.uint32), 1: np.dtype(np.uint16), 30: np.dtype(np.uint16)}
"""Types whose elements stand alone (f32, f16, bf16), so that values of that type can be transposed."""


class StateFormatError(ValueError):
    """The bytes are not laid out as expected."""


class OtherPositions(StateFormatError):
    """The cells are not those of a beginning, one a token: a picture takes fewer positions than cells."""


@dataclass(frozen=True, slots=True)
class StateShape:
    """How the states of one model are laid out. The same for every context it gets."""

    head: bytes
    """The first bytes of any state."""
    cell: int
    """Bytes before a cell's data; 0 where states are tails only."""
    n_keys: int
    """Layers with keys."""
    n_values: int
    """Layers with values."""
    has_tail: bool
    """Whether there is more behind the cells."""


class Rows:
    """One stream's part of a state, from its number of cells on, as views into its bytes."""

    def __init__(self, state: State, shape: StateShape, at: int = 0) -> None:
        """Raises `StateFormatError` for bytes of another shape."""
        self.shape = shape
        self.count = _number(state, at)
        begin, at = at, at + 4
        self.heads = _take(state, at, self.count * shape.cell).reshape(self.count, shape.cell)
        at += self.count * shape.cell
        self.transposed = _number(state, at) == 1
        if _number(state, at) > 1 or _number(state, at + 4) != shape.n_keys:
            raise StateFormatError("the model's layers are not where they were expected")
        if not (self._words(1) == 1).all():
            raise StateFormatError("a cell of more or less than one sequence")
        at += 8
        self.types: list[tuple[int, int]] = []
        """Of every table the type and the bytes a cell has in it."""
        self.keys: list[npt.NDArray[np.generic]] = []
        """Of every layer (cells, bytes)."""
        self.values: list[npt.NDArray[np.generic]] = []
        """Of every layer (elements, cells), whichever way they lie; of types whose elements do not stand alone (bytes, cells)."""
        for _ in range(shape.n_keys):
            at = self._read_rows(state, at, self.keys)
        for _ in range(shape.n_values):
            at = self._read_turned(state, at) if self.transposed else self._read_rows(state, at, self.values)
        self.end = at
        """Where it ends in the bytes it was read from."""
        self.n_bytes = at - begin

    @property
    def positions(self) -> npt.NDArray[np.int32]:
        return self._words(0)

    def _words(self, index: int) -> npt.NDArray[np.int32]:
        return np.ascontiguousarray(self.heads[:, 4 * index : 4 * index + 4]).view(np.int32).reshape(-1)

    def _read_rows(self, state: State, at: int, into: list[npt.NDArray[np.generic]]) -> int:
        kind, width = _number(state, at), _number(state, at + 4)
        if _number(state, at + 8):
            raise StateFormatError("a row of more than 4 GB")
        rows = _take(state, at + TABLE, self.count * width).reshape(self.count, width)
        self.types.append((kind, width))
        if into is self.values:
            element = ELEMENTS.get(kind)
            into.append((rows.view(element) if element is not None else rows).T)
        else:
            into.append(rows)
        return at + TABLE + self.count * width

    def _read_turned(self, state: State, at: int) -> int:
        kind, element, width = _number(state, at), _number(state, at + 4), _number(state, at + 8)
        if kind not in ELEMENTS or ELEMENTS[kind].itemsize != element:
            raise StateFormatError(f"transposed values of type {kind} with {element} bytes")
        size = self.count * width * element
        self.types.append((kind, width * element))
        self.values.append(_take(state, at + TABLE, size).view(ELEMENTS[kind]).reshape(width, self.count))
        return at + TABLE + size


def learn(state: State, n_tail: int) -> StateShape:
    """The shape that a state of at least one cell has, `n_tail` bytes of which are its tail.

    Raises `StateFormatError` when it has none that is understood.
    """
    head = bytes(state[:HEAD])
    end = len(state) - n_tail
    if end == HEAD:
        return StateShape(head, 0, 0, 0, True)
    at, _, after = _own_stream(state)
    count = _number(state, at)
    for cell in CELLS:
        layers = at + 4 + count * cell + 4
        if layers + 4 > end or _number(state, layers) > 10_000:
            continue
        n_keys = _number(state, layers)
        for n_values in (n_keys, *range(n_keys)):
            shape = StateShape(head, cell, n_keys, n_values, n_tail > 0)
            try:
                if Rows(state, shape, at).end + after == end:
                    return shape
            except StateFormatError:
                continue
    raise StateFormatError("the state's shape is not known")


def take_apart(state: State, shape: StateShape) -> tuple[Rows | None, State]:
    """Rows in the order of their tokens, from the first one on, and the tail. Both may be views into `state`.

    Raises `StateFormatError` for a state of another shape, `OtherPositions` for one that cannot be taken apart.
    """
    if shape.cell == 0:
        return None, state[HEAD:]
    at, _, after = _own_stream(state)
    rows = Rows(state, shape, at)
    tail = _tail(state, rows, after)
    if not _is_beginning(rows.positions, shape):
        # in one pool of cells a sequence may lie in any order
        sorting = np.argsort(rows.positions, kind="stable")
        if not _is_beginning(rows.positions[sorting], shape):
            raise OtherPositions("positions that are not those of a beginning")
        rows = Rows(_gather([(rows, sorting)], transposed=rows.transposed), shape)
    return rows, tail


def _is_beginning(positions: npt.NDArray[np.int32], shape: StateShape) -> bool:
    """Whether cells are those of a sequence's beginning, in order.

    Where cells have a place in a picture too, all those of a picture may have one position, and those after it begin later.
    """
    if shape.cell == CELLS[0]:
        return np.array_equal(positions, np.arange(len(positions)))
    return bool(positions[0] == 0 and (np.diff(positions) >= 0).all())


def cut(rows: Rows, start: int, stop: int) -> State:
    """A copy of some of the rows, in their form."""
    return _gather([(rows, slice(start, stop))], transposed=rows.transposed)


def put_together(pieces: Sequence[State], length: int, tail: State, shape: StateShape, *, n_stream: int = 1) -> State:
    """A whole state of the first `length` cells of adjoining pieces, with a tail behind them, for `n_stream` streams.

    Raises `StateFormatError` when the pieces have fewer cells or do not go together.
    """
    head = np.frombuffer(shape.head, np.uint8)
    if shape.cell == 0:
        return np.concatenate([head, tail])
    parts: list[tuple[Rows, slice]] = []
    for piece in pieces:
        rows = Rows(piece, shape)
        take = min(rows.count, length)
        if take:
            parts.append((rows, slice(0, take)))
        length -= take
    if length or not parts:
        raise StateFormatError("fewer rows than a state was to have")
    return _gather(
        parts, transposed=parts[-1][0].transposed, before=np.concatenate([head, _words(n_stream)]), behind=_behind(n_stream, tail)
    )


def adapt(state: State, shape: StateShape, length: int, *, n_stream: int, transposed: bool) -> State:
    """The same state for a context with another number of streams, or with its values the other way round.

    Without a tail also with no cells but those at positions below `length`. Raises `StateFormatError` for bytes that are
    not understood, or when no cell is left; then nothing can be made of the state.
    """
    if shape.cell == 0:
        return state
    at, old, after = _own_stream(state)
    rows = Rows(state, shape, at)
    tail = _tail(state, rows, after)
    kept: slice | npt.NDArray[np.intp] = slice(0, rows.count)
    if not shape.has_tail and (rows.positions >= length).any():
        kept = np.flatnonzero(rows.positions < length)
        if not len(kept):
            raise StateFormatError(f"a state without cells below position {length}")
    elif old == n_stream and rows.transposed == transposed:
        return state
    before = np.concatenate([state[:HEAD], _words(n_stream)])
    return _gather([(rows, kept)], transposed=transposed, before=before, behind=_behind(n_stream, tail))


def stretch(state: State, shape: StateShape, length: int) -> State:
    """A state of `length` cells that repeats those of another one: it means nothing, but is computed like any other.

    Raises `StateFormatError` for bytes that are not understood, and for memory that has a tail.
    """
    if shape.has_tail:
        raise StateFormatError("a tail cannot be made longer")
    at, _, after = _own_stream(state)
    rows = Rows(state, shape, at)
    cells = np.arange(length) % rows.count
    behind = np.zeros(after, np.uint8)
    made = _gather([(rows, cells)], transposed=rows.transposed, before=state[:at], behind=behind)
    heads = made[at + 4 : at + 4 + length * shape.cell].reshape(length, shape.cell)
    heads[:, :4] = np.arange(length, dtype=np.uint32).view(np.uint8).reshape(length, 4)
    return made


def count_streams(state: State, shape: StateShape) -> int:
    """How many streams the context has that a state is from."""
    return _number(state, HEAD) if shape.cell else 1


NOTHING = np.zeros(0, np.uint8)


def _gather(
    parts: Sequence[tuple[Rows, slice | npt.NDArray[np.intp]]],
    *,
    transposed: bool,
    before: State = NOTHING,
    behind: State = NOTHING,
) -> State:
    """Some rows of several pieces one behind the other, in one form, between other bytes. One allocation."""
    shape, types = parts[0][0].shape, parts[0][0].types
    if any(rows.types != types for rows, _ in parts):
        raise StateFormatError("rows of different types do not go together")
    heads = np.concatenate([rows.heads[where] for rows, where in parts])
    count = len(heads)
    start = [before, _words(count), heads.reshape(-1), _words(int(transposed), shape.n_keys)]
    size = sum(map(len, start)) + sum(TABLE + count * width for _, width in types) + len(behind)
    made = np.empty(size, np.uint8)
    at = sum(map(len, start))
    np.concatenate(start, out=made[:at])
    for i, (kind, width) in enumerate(types):
        made[at : at + TABLE] = _table_head(kind, width, turned=transposed and i >= shape.n_keys)
        at += TABLE + count * width
    made[at:] = behind
    target, at = Rows(made, shape, len(before)), 0
    for rows, where in parts:
        stop = at + len(rows.heads[where])
        for ours, theirs in zip(target.keys, rows.keys, strict=True):
            ours[at:stop] = theirs[where]
        for ours, theirs in zip(target.values, rows.values, strict=True):
            ours[:, at:stop] = theirs[:, where]
        at = stop
    return made


def _table_head(kind: int, width: int, *, turned: bool) -> State:
    if not turned:
        return _words(kind, width, 0)
    if kind not in ELEMENTS:
        raise StateFormatError(f"values of type {kind} cannot be transposed")
    element = ELEMENTS[kind].itemsize
    return _words(kind, element, width // element)


def _behind(n_stream: int, tail: State) -> State:
    """What follows the cells when they are those of the first stream."""
    return np.concatenate([np.zeros(4 * (n_stream - 1), np.uint8), tail])


def _own_stream(state: State) -> tuple[int, int, int]:
    """Where the one stream with cells begins, how many streams there are, and how many bytes the others take behind it."""
    n_stream = _number(state, HEAD)
    for i in range(n_stream):
        at = HEAD + 4 + 4 * i
        if _number(state, at):
            return at, n_stream, 4 * (n_stream - 1 - i)
    raise StateFormatError("a state without cells")


def _tail(state: State, rows: Rows, after: int) -> State:
    tail = state[rows.end + after :]
    if rows.end + after > len(state) or (len(tail) > 0) != rows.shape.has_tail:
        raise StateFormatError(f"{len(tail)} bytes are left over")
    return tail


def _take(state: State, at: int, size: int) -> State:
    if at + size > len(state):
        raise StateFormatError("the state is cut short")
    return state[at : at + size]


def _number(state: State, at: int) -> int:
    return int(_take(state, at, 4).view(np.uint32)[0])


def _words(*values: int) -> State:
    return np.array(values, np.uint32).view(np.uint8)
