"""Vectors of pictures and sounds that were encoded before, in host memory. Pure."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]

OVERHEAD = 400
"""Bytes that an entry takes beside its vectors."""


class Encodings:
    """Keeps vectors by name under a hard cap; the least recently used fall out."""

    def __init__(self, capacity: int) -> None:
        """`capacity` in bytes, 0 to keep nothing."""
        self.capacity = capacity
        self.n_bytes = 0
        self.n_hits = 0
        self._kept: OrderedDict[bytes, FloatArray] = OrderedDict()

    def get(self, name: bytes) -> FloatArray | None:
        """Vectors that are kept; marks them as used."""
        vectors = self._kept.get(name)
        if vectors is not None:
            self._kept.move_to_end(name)
            self.n_hits += 1
        return vectors

    def put(self, name: bytes, vectors: FloatArray) -> None:
        """Keep vectors, unless they do not fit at all."""
        size = vectors.nbytes + OVERHEAD
        if size > self.capacity or name in self._kept:
            return
        self._kept[name] = vectors
        self.n_bytes += size
        while self.n_bytes > self.capacity:
            _, oldest = self._kept.popitem(last=False)
            self.n_bytes -= oldest.nbytes + OVERHEAD
