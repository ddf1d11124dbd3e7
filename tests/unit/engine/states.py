"""States as libllama writes them, with recognisable contents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from puna.llama.state import State, StateShape, learn

HEAD = (0xAF143CD8, 0)
WIDTH = 6


def u32(*numbers: int) -> bytes:
    return np.array(numbers, np.uint32).tobytes()


def table(kind: type[np.uint32], count: int, *columns: object) -> bytes:
    return np.stack([np.broadcast_to(np.asarray(column, kind), count) for column in columns], axis=1).tobytes()


def make_state(
    tokens: Sequence[int],
    *,
    stream: int = 0,
    n_stream: int = 1,
    transposed: bool = True,
    kind: int = 1,
    layers: int = 2,
    values: int | None = None,
    extended: bool = False,
    tail: bytes = b"",
    order: Sequence[int] | None = None,
) -> State:
    """A state whose every cell tells its token and its position.

    `order` is that of the cells, `values` counts the layers that have any.
    """
    positions = np.arange(len(tokens), dtype=np.uint32) if order is None else np.array(order, np.uint32)
    ids = np.array(tokens, np.uint32)[positions]
    element = {0: np.uint32, 1: np.uint16}[kind]
    columns = [positions, 1, *((7, 8, 9) if extended else ()), stream]
    own = u32(len(tokens)) + table(np.uint32, len(tokens), *columns) + u32(transposed, layers)
    for layer in range(layers):
        own += u32(kind) + np.uint64(8).tobytes() + table(np.uint32, len(tokens), ids, positions + layer)
    for layer in range(layers if values is None else values):
        cells = (ids[:, None] * 10 + np.arange(WIDTH) + layer).astype(element)
        width = WIDTH * cells.itemsize
        head = u32(kind, cells.itemsize, WIDTH) if transposed else u32(kind) + np.uint64(width).tobytes()
        own += head + np.ascontiguousarray(cells.T if transposed else cells).tobytes()
    whole = u32(*HEAD, n_stream) + u32(*[0] * stream) + own + u32(*[0] * (n_stream - stream - 1)) + tail
    return np.frombuffer(whole, np.uint8)


def make_shape(**more: object) -> StateShape:
    """The shape of states that are made with the same options."""
    state = make_state((1, 2), **more)  # type: ignore[arg-type]  # passed on
    tail = more.get("tail", b"")
    assert isinstance(tail, bytes)
    return learn(state, len(tail))
