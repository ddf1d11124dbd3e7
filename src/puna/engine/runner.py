"""Carries out a plan: fills the batch, decodes, and says which row's logits belong to whom."""

from __future__ import annotations

import time
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field, replace

import numpy as np

from puna.engine.media.runs import Run
from puna.engine.scheduler import Plan
from puna.engine.sequence import Sequence
from puna.llama.batch import Batch, VectorBatch
from puna.llama.context import Context, FloatArray
from puna.llama.lora import Lora


@dataclass(frozen=True, slots=True)
class End:
    """A sequence all of whose tokens are in memory."""

    sequence: Sequence
    row: int
    """The batch row of its last token; those of its draft follow."""
    draft: tuple[int, ...] = ()
    """Drafted tokens, which have cells beyond those that are counted."""


@dataclass(slots=True)
class Computed:
    """What a decoded plan brought."""

    ends: list[End] = field(default_factory=list)
    """Sequences all of whose tokens are in memory now."""
    scored: list[tuple[Sequence, int, int]] = field(default_factory=list)
    """Sequences whose prompt's own probabilities are wanted: first row, and the position it stands for."""
    overflowed: list[Sequence] = field(default_factory=list)
    """Sequences whose numbers grew beyond what the engine can hold, because of their adapters; they are not in the others."""
    spoiled: bool = False
    """Whether some drafted tokens' numbers did; those drafts are cut, but their cells hold what would spoil others."""
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
        if plan.run is not None:
            return self._run_vectors(plan, plan.run)
        self._batch.clear()
        computed = Computed()
        ends_of_pieces: list[tuple[Sequence, int]] = []
        for piece in plan.pieces:
            sequence = piece.sequence
            tokens = [*sequence.tokens[sequence.n_done : sequence.n_done + piece.count], *piece.draft]
            scored = sequence.generation.prompt_probs and sequence.n_done < sequence.n_prompt
            chooses = piece.reaches_end and sequence.generation.max_tokens != 0
            n_logits = piece.count if scored else int(chooses or bool(plan.adapters.scales))
            position = sequence.runs.position(sequence.n_done)
            last = self._batch.add(tokens, position, sequence.seat, n_logits=n_logits + len(piece.draft))
            row = last - len(piece.draft)
            ends_of_pieces.append((sequence, row))
            if scored:
                computed.scored.append((sequence, row + 1 - piece.count, sequence.n_done))
            if piece.reaches_end:
                computed.ends.append(End(sequence, row, piece.draft))
        begin = time.perf_counter()
        self._context.use_adapters([(self._loras[id], scale) for id, scale in plan.adapters.scales])
        self._context.decode(self._batch)
        for piece in plan.pieces:
            piece.sequence.n_done += piece.count
        computed.seconds = time.perf_counter() - begin
        if plan.adapters.scales:
            self._sort_out(computed, ends_of_pieces)
        return computed

    def _run_vectors(self, plan: Plan, run: Run) -> Computed:
        """The same for a piece of a run, whose vectors the sequence has."""
        (piece,) = plan.pieces
        sequence = piece.sequence
        assert sequence.encoded is not None
        first = sequence.n_done - run.start
        part = slice(first, first + piece.count)
        wants_logits = (piece.reaches_end and sequence.generation.max_tokens != 0) or bool(plan.adapters.scales)
        positions = run.patch.positions(run.position)[:, part]
        batch = VectorBatch(sequence.encoded[1][part], positions, sequence.seat, n_logits=int(wants_logits))
        begin = time.perf_counter()
        self._context.use_adapters([(self._loras[id], scale) for id, scale in plan.adapters.scales])
        if run.patch.causal:
            self._context.decode(batch)
        else:
            self._context.decode_together(batch)
        ends = piece.reaches_end
        sequence.n_done += piece.count
        if sequence.n_done == run.end:
            sequence.encoded = None
        computed = Computed(seconds=time.perf_counter() - begin)
        if ends:
            computed.ends.append(End(sequence, piece.count - 1))
        if plan.adapters.scales:
            self._sort_out(computed, [(sequence, piece.count - 1)])
        return computed

    def _sort_out(self, computed: Computed, ends_of_pieces: list[tuple[Sequence, int]]) -> None:
        """Find what overflowed. What did once shows in every later row of the sequence, so that looking at the last will do."""
        overflowed = {sequence.id: sequence for sequence, row in ends_of_pieces if not np.isfinite(self.logits(row)).all()}
        computed.overflowed = list(overflowed.values())
        computed.ends = [self._without_overflow(end, computed) for end in computed.ends if end.sequence.id not in overflowed]
        computed.scored = [one for one in computed.scored if one[0].id not in overflowed]

    def _without_overflow(self, end: End, computed: Computed) -> End:
        """Only the part of a draft whose numbers can be used."""
        rows = range(1, len(end.draft) + 1)
        n_good = next((n - 1 for n in rows if not np.isfinite(self.logits(end.row + n)).all()), len(end.draft))
        computed.spoiled |= n_good < len(end.draft)
        return replace(end, draft=end.draft[:n_good])
