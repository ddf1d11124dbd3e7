"""A batch: the tokens of one decode call."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from puna.llama.library import C

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int32]


class Batch:
    """Rows of (token, position, sequence, logits wanted), kept in NumPy arrays that the C struct points into.

    Every row belongs to one sequence. The arrays are reused: `clear` and refill.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.n = 0
        self._token = np.zeros(capacity, np.int32)
        self._pos = np.zeros(capacity, np.int32)
        self._seq = np.zeros(capacity, np.int32)
        self._n_seq = np.ones(capacity, np.int32)
        self._logits = np.zeros(capacity, np.int8)
        # one pointer a row, each to its own cell of _seq
        self._seq_pointers = self._seq.ctypes.data + 4 * np.arange(capacity, dtype=np.uintp)
        self._struct = C.llama_batch(
            n_tokens=0,
            token=_pointer(self._token, C.llama_token),
            embd=None,
            pos=_pointer(self._pos, C.llama_pos),
            n_seq_id=_pointer(self._n_seq, ctypes.c_int32),
            seq_id=_pointer(self._seq_pointers, ctypes.POINTER(C.llama_seq_id)),
            logits=_pointer(self._logits, ctypes.c_int8),
        )

    def clear(self) -> None:
        self.n = 0

    def add(self, tokens: Sequence[int] | IntArray, start: int, sequence: int, *, n_logits: int) -> int:
        """Append consecutive tokens of a sequence at positions from `start`; the index of the last row.

        Logits are computed for the last `n_logits` of them.
        """
        begin, end = self.n, self.n + len(tokens)
        if end > self.capacity:
            raise ValueError(f"{end} rows do not fit a batch of {self.capacity}")
        self._token[begin:end] = tokens
        self._pos[begin:end] = np.arange(start, start + len(tokens), dtype=np.int32)
        self._seq[begin:end] = sequence
        self._logits[begin : end - n_logits] = 0
        self._logits[end - n_logits : end] = 1
        self.n = end
        return end - 1

    @property
    def struct(self) -> Any:
        """The `llama_batch` for the rows added so far; valid while this object lives."""
        self._struct.n_tokens = self.n
        return self._struct


class VectorBatch:
    """Vectors in the place of tokens, of one sequence: one decode call."""

    def __init__(self, vectors: FloatArray, positions: IntArray, sequence: int, *, n_logits: int) -> None:
        """`vectors`: (n, width), `positions`: (sections, n). Logits are computed for the last `n_logits` of them."""
        self.n = len(vectors)
        self._kept = (
            np.ascontiguousarray(vectors, np.float32),
            np.ascontiguousarray(positions, np.int32),
            np.ones(self.n, np.int32),
            np.full(self.n, sequence, np.int32),
            np.zeros(self.n, np.int8),
        )
        embd, pos, n_seq, seq, logits = self._kept
        logits[self.n - n_logits :] = 1
        self._seq_pointers = seq.ctypes.data + 4 * np.arange(self.n, dtype=np.uintp)
        self.struct = C.llama_batch(
            n_tokens=self.n,
            token=None,
            embd=_pointer(embd, ctypes.c_float),
            pos=_pointer(pos, C.llama_pos),
            n_seq_id=_pointer(n_seq, ctypes.c_int32),
            seq_id=_pointer(self._seq_pointers, ctypes.POINTER(C.llama_seq_id)),
            logits=_pointer(logits, ctypes.c_int8),
        )
        """The `llama_batch`; valid while this object lives."""


def _pointer(array: Any, kind: Any) -> Any:
    return ctypes.cast(array.ctypes.data, ctypes.POINTER(kind))
