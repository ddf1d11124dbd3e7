"""Contexts that compute inputs side by side, each on its share of the threads.

Threads that work on one batch wait for each other after every operation, and small models have many small ones. Threads
with a batch each do not wait at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from puna.engine.packing import TOKEN, Input, deal
from puna.llama.batch import Batch, VectorBatch
from puna.llama.context import DecodeError
from puna.llama.lora import Lora
from puna.llama.pooled import PooledContext

Result = list[bytes] | DecodeError
"""Each input's vector, or why there is none."""


class Lane:
    """A context, and the batch that it computes."""

    def __init__(self, context: PooledContext, room: int, n_batch: int, loras: Sequence[Lora]) -> None:
        """`loras` are the loaded adapters, by id."""
        self.context = context
        self.room = room
        """Tokens of the longest input."""
        self._batch = Batch(n_batch)
        self._loras = loras

    def compute(self, tokens: bytes, start: int, lora: Sequence[tuple[int, float]], n_threads: int) -> None:
        """Compute a part of the first sequence, from a position on. Raises `DecodeError`."""
        self._fill([(tokens, start)])
        self._run(lora, n_threads)

    def compute_vectors(self, batch: VectorBatch, lora: Sequence[tuple[int, float]], n_threads: int, *, causal: bool) -> None:
        """The same for a part that is vectors itself."""
        self._prepare(lora, n_threads)
        if causal:
            self.context.compute(batch)
        else:
            self.context.compute_together(batch)

    def vectors(self, inputs: Sequence[Input], n_threads: int) -> Result:
        """Compute whole inputs, and forget them."""
        try:
            self._fill([(one.tokens, 0) for one in inputs])
            self._run(inputs[0].lora, n_threads)
            if self.context.pooling != "none":
                return [self.context.vector(seat) for seat in range(len(inputs))]
            rows = self.context.vectors(self._batch.n)
            ends = np.cumsum([one.n_tokens for one in inputs])
            return [rows[end - one.n_tokens : end].tobytes() for one, end in zip(inputs, ends, strict=True)]
        except DecodeError as error:
            return error
        finally:
            self.context.clear()

    def part(self, n_rows: int, *, last: bool) -> bytes:
        """What the part just computed of one sequence adds to its vectors."""
        if self.context.pooling == "none":
            return self.context.vectors(n_rows).tobytes()
        return self.context.vector(0) if last else b""

    def _fill(self, pieces: Sequence[tuple[bytes, int]]) -> None:
        self._batch.clear()
        for seat, (tokens, start) in enumerate(pieces):
            ids = np.frombuffer(tokens, np.int32)
            self._batch.add(ids, start, seat, n_logits=len(ids))

    def _run(self, lora: Sequence[tuple[int, float]], n_threads: int) -> None:
        self._prepare(lora, n_threads)
        self.context.compute(self._batch)

    def _prepare(self, lora: Sequence[tuple[int, float]], n_threads: int) -> None:
        # adapters with an invocation wait for an answer to begin, and here is none
        self.context.use_adapters([(self._loras[id], scale) for id, scale in lora if not self._loras[id].invocation])
        self.context.use_threads(n_threads)


class Lanes:
    """Lanes of the same kind, of which only the first one grows."""

    def __init__(self, lanes: Sequence[Lane], n_threads: int) -> None:
        self._lanes = list(lanes)
        self._n_threads = n_threads
        self._pool = ThreadPoolExecutor(max(1, len(lanes) - 1), thread_name_prefix="lane")

    def __len__(self) -> int:
        return len(self._lanes)

    @property
    def first(self) -> Lane:
        """The one that computes what is computed alone."""
        return self._lanes[0]

    @first.setter
    def first(self, lane: Lane) -> None:
        self._lanes[0] = lane

    def warm_up(self) -> None:
        """Compute two tokens in every lane: shows an illegal instruction before any client waits. Raises `DecodeError`."""
        two = Input(0, 0, bytes(2 * TOKEN))
        for lane in self._lanes:
            result = lane.vectors([two], self._n_threads)
            if isinstance(result, DecodeError):
                raise result

    def alone(self, tokens: bytes, start: int, lora: Sequence[tuple[int, float]]) -> None:
        """Compute a part of a sequence in the first lane, with all threads. Raises `DecodeError`."""
        self.first.compute(tokens, start, lora, self._n_threads)

    def vectors_alone(self, batch: VectorBatch, lora: Sequence[tuple[int, float]], *, causal: bool) -> None:
        """The same for a part that is vectors itself."""
        self.first.compute_vectors(batch, lora, self._n_threads, causal=causal)

    def run(self, inputs: Sequence[Input]) -> list[tuple[list[Input], Result]]:
        """Compute whole inputs in as many lanes as there are inputs for; each lane's share and what came of it."""
        shares = deal(inputs, len(self._lanes))
        n_threads = max(1, self._n_threads // len(shares))
        others = [
            self._pool.submit(lane.vectors, share, n_threads) for lane, share in zip(self._lanes[1:], shares[1:], strict=False)
        ]
        mine = self.first.vectors(shares[0], n_threads)
        return list(zip(shares, [mine, *(other.result() for other in others)], strict=True))
