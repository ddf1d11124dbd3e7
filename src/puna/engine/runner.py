"""Carries out a plan: fills the batch, decodes, and says which row's logits belong to whom."""

from __future__ import annotations

import time
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field

import numpy as np

from puna.engine.scheduler import Plan
from puna.engine.sequence import Sequence
from puna.llama.batch import Batch
from puna.llama.context import Context, FloatArray
from puna.llama.lora import Lora


@dataclass(slots=True)
class Computed:
    """What a decoded plan brought."""

    ends: list[tuple[Sequence, int]] = field(default_factory=list)
    """Sequences all of whose tokens are in memory now, each with the batch row of its last one."""
    scored: list[tuple[Sequence, int, int]] = field(default_factory=list)
    """Sequences whose prompt's own probabilities are wanted: first row, and the position it stands for."""
    overflowed: list[Sequence] = field(default_factory=list)
    """Sequences whose numbers grew beyond what the engine can hold, because of their adapters; they are not in the others."""
    seconds: float = 0.0


class Runner:
    """Owns the batch; drives one context."""

    def __init__(self, context: Context, n_batch: int, loras: SequenceOf[Lora] = ()) -> None:
        """`loras` are the loaded adapters, by id."""
        self._context = context
        self._loras = loras
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
        ends_of_pieces: list[tuple[Sequence, int]] = []
        for piece in plan.pieces:
            sequence = piece.sequence
            tokens = sequence.tokens[sequence.n_done : sequence.n_done + piece.count]
            scored = sequence.generation.prompt_probs and sequence.n_done < sequence.n_prompt
            chooses = piece.reaches_end and sequence.generation.max_tokens != 0
            n_logits = piece.count if scored else int(chooses or bool(plan.adapters.scales))
            row = self._batch.add(tokens, sequence.n_done, sequence.seat, n_logits=n_logits)
            ends_of_pieces.append((sequence, row))
            if scored:
                computed.scored.append((sequence, row + 1 - piece.count, sequence.n_done))
            if piece.reaches_end:
                computed.ends.append((sequence, row))
        begin = time.perf_counter()
        self._context.use_adapters([(self._loras[id], scale) for id, scale in plan.adapters.scales])
        self._context.decode(self._batch)
        for piece in plan.pieces:
            piece.sequence.n_done += piece.count
        computed.seconds = time.perf_counter() - begin
        if plan.adapters.scales:
            self._sort_out(computed, ends_of_pieces)
        return computed

    def _sort_out(self, computed: Computed, ends_of_pieces: list[tuple[Sequence, int]]) -> None:
        """Find what overflowed. What did once shows in every later row of the sequence, so that looking at the last will do."""
        overflowed = {sequence.id: sequence for sequence, row in ends_of_pieces if not np.isfinite(self.logits(row)).all()}
        computed.overflowed = list(overflowed.values())
        computed.ends = [one for one in computed.ends if one[0].id not in overflowed]
        computed.scored = [one for one in computed.scored if one[0].id not in overflowed]
