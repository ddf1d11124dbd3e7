"""The bytes of a saved sequence, as far as they have to be understood. Source: libllama's `llama_kv_cache::state_write`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

State = npt.NDArray[np.uint8]

N_STREAM_AT = 8
"""Byte offset of the number of streams, after a magic number and the sequence's id."""

COUNTS_AT = 12


def restream(state: State, n_stream: int) -> State:
    """The same state for a context with another number of streams.

    A state lists every stream's cells, though all but the sequence's own have none: a count of 32 bits each, the cells
    behind theirs. For plain attention memory only; others keep more than one such list.
    """
    (old,) = state[N_STREAM_AT:COUNTS_AT].view(np.uint32)
    if old == n_stream:
        return state
    counts = state[COUNTS_AT : COUNTS_AT + 4 * int(old)].view(np.uint32)
    before = int(np.argmax(counts != 0))
    after = int(old) - before - 1
    own = state[COUNTS_AT + 4 * before : len(state) - 4 * after]
    moved = np.zeros(COUNTS_AT + len(own) + 4 * (n_stream - 1), np.uint8)
    moved[:COUNTS_AT] = state[:COUNTS_AT]
    moved[N_STREAM_AT:COUNTS_AT].view(np.uint32)[0] = n_stream
    moved[COUNTS_AT : COUNTS_AT + len(own)] = own
    return moved
