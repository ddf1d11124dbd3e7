"""What follows a sequence whose tokens are all in memory."""

from __future__ import annotations

import time
from collections.abc import Sequence as SequenceOf
from functools import partial
from typing import Literal

from puna.engine.arena import Arena
from puna.engine.outbox import Blame, Outbox
from puna.engine.recorder import Recorder
from puna.engine.runner import End
from puna.engine.sampling import Choice
from puna.engine.sampling_pool import SamplingPool
from puna.engine.sequence import Sequence, common_prefix
from puna.engine.stats import Counters
from puna.errors import InvalidRequest
from puna.llama.sampler import Candidates
from puna.types import StopType

MOST_FORCED = 64
"""Most tokens that a grammar appends after one that was chosen."""


class Chooser:
    """Chooses tokens row by row and says so in the outbox.

    A drafted token is never taken over: every token is chosen from its row of logits, as without drafts. If that is the
    drafted one, the row after it is worth something too, and the next token is chosen from that.
    """

    def __init__(
        self,
        arena: Arena,
        candidates: Candidates,
        pool: SamplingPool[Choice],
        counters: Counters,
        outbox: Outbox,
        recorder: Recorder,
    ) -> None:
        self._arena = arena
        self._candidates = candidates
        self._pool = pool
        self._ahead: dict[int, Choice | InvalidRequest | ValueError] = {}
        """By sequence id, what `look_ahead` chose and `advance` has not yet taken."""
        self._counters = counters
        self._outbox = outbox
        self._recorder = recorder
        self.error = ""
        """What was wrong when `advance` last returned `error`."""
        self.blame: Blame = "fault"

    def look_ahead(self, ends: SequenceOf[End]) -> None:
        """Choose the first tokens of several sequences at once, where that takes less time.

        `advance` has to be called for each of them before the next batch. Grammars are left to it: their time is watched
        by a clock of which there is only one.
        """
        usual = [
            (end.sequence, end.row, sampler)
            for end in ends
            if (sampler := end.sequence.sampler) and sampler.goes_through_all and end.sequence.generation.max_tokens != 0
        ]
        if not self._pool.pays(len(usual)):
            return
        ids = [sequence.id for sequence, _, _ in usual]
        self._recorder.record("sample", ids)
        logits = self._arena.runner.logits
        jobs = [partial(sampler.choose, logits(row), most=self._most(sequence)) for sequence, row, sampler in usual]
        self._ahead = dict(zip(ids, self._pool.run(jobs), strict=True))

    def advance(self, end: End) -> StopType | Literal["error"]:
        """Append what follows a sequence; why it has ended, `none` if it has not."""
        sequence = end.sequence
        if sequence.generation.max_tokens == 0:
            self._outbox.ended(sequence, "limit")
            return "limit"
        self._recorder.record("sample", (sequence.id,))
        first = sequence.first_token == 0
        chosen: list[Choice] = []
        try:
            stop, n_right = self._choose(end, chosen)
        except (InvalidRequest, ValueError) as error:
            if chosen:
                self._outbox.chosen(sequence, chosen, "none", first=first)
            self.error, self.blame = str(error), "invalid" if isinstance(error, InvalidRequest) else "fault"
            return "error"
        sequence.n_done += n_right
        sequence.n_fresh = sequence.n_pending
        if end.draft:
            sequence.n_drafted += len(end.draft)
            sequence.n_draft_accepted += n_right
            self._counters.draft(len(end.draft), n_right)
        if chosen:
            self._counters.predicted_tokens += sum(len(choice.tokens) for choice in chosen)
            self._outbox.chosen(sequence, chosen, stop, first=first, n_drafted=len(end.draft), n_right=n_right)
        else:
            self._outbox.ended(sequence, stop)
        return stop

    def _choose(self, end: End, chosen: list[Choice]) -> tuple[StopType, int]:
        """Fill `chosen`; why the sequence has ended, and how many tokens of the draft were right."""
        sequence, draft = end.sequence, end.draft
        sampler = sequence.sampler
        assert sampler is not None
        n_right = 0
        while True:
            choice = self._ahead.pop(sequence.id, None)
            if choice is None:
                logits = self._arena.runner.logits(end.row + n_right)
                choice = sampler.choose(logits, self._candidates, self._most(sequence))
            elif not isinstance(choice, Choice):
                raise choice
            if sequence.first_token == 0:
                sequence.first_token = time.monotonic()
            if choice.ends:
                return "eos", n_right
            chosen.append(choice)
            sequence.tokens += choice.tokens
            n_same = common_prefix(list(choice.tokens), list(draft[n_right : n_right + len(choice.tokens)]))
            n_right += n_same
            stop = self._stop(sequence)
            if stop != "none" or n_same < len(choice.tokens):
                return stop, n_right

    def _most(self, sequence: Sequence) -> int:
        """How many tokens a sequence may still get; a step's forced ones must also fit a batch beside everybody's."""
        if sequence.generation.deterministic:
            return 1
        limit = sequence.generation.max_tokens
        left = MOST_FORCED if self._arena.may_shift(sequence) else self._arena.limit - len(sequence.tokens)
        if limit > 0:
            left = min(left, limit - sequence.n_produced)
        return max(1, min(left, MOST_FORCED))

    def _stop(self, sequence: Sequence) -> StopType:
        limit = sequence.generation.max_tokens
        if sequence.sampler is not None and sequence.sampler.complete:
            return "eos"
        full = len(sequence.tokens) >= self._arena.limit and not self._arena.may_shift(sequence)
        return "limit" if full or 0 <= limit <= sequence.n_produced else "none"
