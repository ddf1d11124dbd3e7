"""Carries out a plan: fills the batch, decodes, and says which row's logits belong to whom."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from puna.engine.scheduler import Plan
from puna.engine.sequence import Sequence
from puna.llama.batch import Batch
from puna.llama.context import Context, FloatArray


@dataclass(slots=True)
class Computed:
    """What a decoded plan brought."""

    ends: list[tuple[Sequence, int]] = field(default_factory=list)
    """Sequences all of whose tokens are in memory now, each with the batch row of its last one."""
    scored: list[tuple[Sequence, int, int]] = field(default_factory=list)
    """Sequences whose prompt's own probabilities are wanted: first row, and the position it stands for."""
    seconds: float = 0.0


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

    def run(self, plan: Plan) -> Computed:
        """Decode the plan's tokens and count them as done. Raises `NoRoom` or `DecodeError`, with no sequence changed."""
        self._batch.clear()
        computed = Computed()
        for piece in plan.pieces:
            sequence = piece.sequence
            tokens = sequence.tokens[sequence.n_done : sequence.n_done + piece.count]
            scored = sequence.generation.prompt_probs and sequence.n_done < sequence.n_prompt
            chooses = piece.reaches_end and sequence.generation.max_tokens != 0
            n_logits = piece.count if scored else int(chooses)
            row = self._batch.add(tokens, sequence.n_done, sequence.seat, n_logits=n_logits)
            if scored:
                computed.scored.append((sequence, row + 1 - piece.count, sequence.n_done))
            if piece.reaches_end:
                computed.ends.append((sequence, row))
        begin = time.perf_counter()
        self._context.decode(self._batch)
        for piece in plan.pieces:
            piece.sequence.n_done += piece.count
        computed.seconds = time.perf_counter() - begin
        return computed
