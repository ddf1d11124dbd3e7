"""Carries out a plan: fills the batch, decodes, and says which row's logits belong to whom."""

from __future__ import annotations

import time

from puna.engine.scheduler import Plan
from puna.engine.sequence import Sequence
from puna.llama.batch import Batch
from puna.llama.context import Context, FloatArray


class Runner:
    """Owns the batch; drives one context."""

    def __init__(self, context: Context, n_batch: int) -> None:
        self._context = context
        self._batch = Batch(n_batch)
        self.capacity = n_batch
        """Most rows of a plan."""

    def rebind(self, context: Context) -> None:
        """Go on with another context."""
        self._context = context

    def logits(self, row: int) -> FloatArray:
        """The logits of a row of the last plan, as a writable view that the next one overwrites."""
        return self._context.logits(row)

    def run(self, plan: Plan) -> tuple[list[tuple[Sequence, int]], float]:
        """Decode the plan's tokens and count them as done.

        Returns the sequences that choose a token now, each with the batch row of its logits, and the seconds it took.
        Raises `NoRoom` or `DecodeError`, with no sequence changed.
        """
        self._batch.clear()
        ends = []
        for piece in plan.pieces:
            sequence = piece.sequence
            tokens = sequence.tokens[sequence.n_done : sequence.n_done + piece.count]
            wants_logits = piece.reaches_end and sequence.generation.max_tokens != 0
            row = self._batch.add(tokens, sequence.n_done, sequence.seat, last_logits=wants_logits)
            if piece.reaches_end:
                ends.append((sequence, row))
        begin = time.perf_counter()
        self._context.decode(self._batch)
        for piece in plan.pieces:
            piece.sequence.n_done += piece.count
        return ends, time.perf_counter() - begin
