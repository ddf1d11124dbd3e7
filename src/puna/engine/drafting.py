"""Drafts for a step: tokens that may follow, computed along with what is known to come, and kept as far as they are right."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from puna.engine.draft_model import Asked, DraftModel
from puna.engine.draft_policy import (
    MATCH_CHANCES,
    PROB_CHANCES,
    SMOOTHING,
    Acceptance,
    DraftPolicy,
    Offer,
    Wish,
    match_grades,
    prob_grade,
)
from puna.engine.ngrams import Drafter, SharedDrafter, SharedNgrams, SuffixMap, SuffixSearch
from puna.engine.scheduler import Piece, Plan
from puna.engine.sequence import Sequence as EngineSequence
from puna.engine.sequence import common_prefix
from puna.speculation import MOST_DRAFTED


@dataclass(frozen=True, slots=True)
class Proposal:
    """Tokens that were guessed, drafted or not."""

    tokens: tuple[int, ...]
    grades: tuple[int, ...]
    """How well each is founded."""
    by_model: bool = False


@dataclass(slots=True)
class Draft:
    """What guesses for a sequence, and what that has been worth."""

    drafter: Drafter | None
    """Looks into the text; None where only a model is asked."""
    chance: float
    """That a model's token is right, as seen lately."""
    matched: Acceptance = field(default_factory=lambda: Acceptance(MATCH_CHANCES))
    modelled: Acceptance = field(default_factory=lambda: Acceptance(PROB_CHANCES))
    n_fed: int = 0
    """Tokens of the sequence that were taken notice of, those that context shifts dropped included."""
    proposal: Proposal | None = None
    """What was guessed for the last step."""

    def chances(self, proposal: Proposal) -> list[float]:
        """For each token the chance to be right if all before it are."""
        return (self.modelled if proposal.by_model else self.matched).chances(proposal.grades)


class Drafting:
    """Puts drafts into plans. Only where nothing is read: a prompt's pieces fill a step anyway, and streams wait for it."""

    def __init__(
        self,
        policy: DraftPolicy,
        *,
        can_cut: bool,
        model: DraftModel | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Without `can_cut` what turns out wrong could not be taken back, and nothing is drafted. `clock` tells seconds of
        work."""
        self.policy = policy
        self._can_cut = can_cut
        self._model = model
        self._clock = clock
        self._began = 0.0
        self._shared = SharedNgrams()

    def extend(self, plan: Plan, *, capacity: int, length: int) -> Plan:
        """The plan with drafts: up to `capacity` rows in all, and `length` tokens of each sequence."""
        if not plan.n_prefill and self._can_cut:
            plan = self._extend(plan, capacity, length)
        self._began = self._clock()
        return plan

    def _extend(self, plan: Plan, capacity: int, length: int) -> Plan:
        room = capacity - sum(piece.count for piece in plan.pieces)
        limits: dict[int, int] = {}
        drafting = []
        for piece in plan.pieces:
            limit = self._limit(piece, length)
            if limit > 0:
                self._take_notice(piece.sequence)
                drafting.append(piece.sequence)
                limits[piece.sequence.id] = min(limit, room // (len(plan.pieces) - len(limits)))
        for sequence in drafting:
            self._look_back(sequence, limits[sequence.id])
        if self._model is not None:
            self._ask(self._model, drafting, limits, plan.n_decoding)
        guessing = [sequence for sequence in drafting if sequence.draft is not None and sequence.draft.proposal is not None]
        if not guessing:
            return plan
        chosen = self.policy.lengths([self._offer(sequence) for sequence in guessing], plan.n_decoding)
        drafts = {
            sequence.id: sequence.draft.proposal.tokens[:n]
            for sequence, n in zip(guessing, chosen, strict=True)
            if n and sequence.draft is not None and sequence.draft.proposal is not None
        }
        pieces = (replace(piece, draft=drafts.get(piece.sequence.id, ())) for piece in plan.pieces)
        return replace(plan, pieces=tuple(pieces))

    def observe(self, plan: Plan) -> None:
        """Learn what the step cost that was last extended."""
        if not plan.n_prefill and all(piece.count == 1 for piece in plan.pieces):
            self.policy.observe(plan.n_decoding, plan.n_drafted, self._clock() - self._began)

    def forget(self, sequence: EngineSequence) -> None:
        """Free what is held for a sequence that ends, or waits."""
        if self._model is not None:
            self._model.forget(sequence.id)

    def _limit(self, piece: Piece, length: int) -> int:
        """Most tokens that may be drafted after a piece: what is drafted must have room, and could still be wanted."""
        sequence = piece.sequence
        wanted = sequence.generation
        if not wanted.speculation.on or wanted.deterministic or wanted.prompt_probs or sequence.internal:
            return 0
        if not piece.reaches_end or not sequence.n_produced:
            return 0
        left = wanted.max_tokens - sequence.n_produced - 1 if wanted.max_tokens >= 0 else MOST_DRAFTED
        return min(wanted.speculation.n_max, MOST_DRAFTED, left, length - len(sequence.tokens))

    def _take_notice(self, sequence: EngineSequence) -> None:
        """Compare what was guessed with what has come since, and let the drafter see that."""
        draft = sequence.draft
        if draft is None:
            drafter = self._make(sequence) if sequence.generation.speculation.uses_ngrams else None
            sequence.draft = draft = Draft(drafter, self.policy.usual)
        n_fresh = len(sequence.tokens) + sequence.n_dropped - draft.n_fed
        fresh = sequence.tokens[max(0, len(sequence.tokens) - n_fresh) :]
        if (proposal := draft.proposal) is not None:
            self._compare(draft, proposal, fresh)
        draft.proposal = None
        if draft.drafter is not None:
            draft.drafter.feed(fresh)
        draft.n_fed += n_fresh

    def _compare(self, draft: Draft, proposal: Proposal, fresh: list[int]) -> None:
        n_right = common_prefix(list(proposal.tokens), fresh)
        grades = proposal.grades[: len(fresh)]
        if not proposal.by_model:
            draft.matched.observe(grades, n_right)
            return
        draft.modelled.observe(grades, n_right)
        self.policy.observe_chance(n_right, len(grades))
        for at in range(min(len(grades), n_right + 1)):
            draft.chance += SMOOTHING / 2 * ((at < n_right) - draft.chance)

    # who guesses

    def _look_back(self, sequence: EngineSequence, most: int) -> None:
        """Guess from the text."""
        draft = sequence.draft
        if draft is None or draft.drafter is None or most < 1:
            return
        guess = draft.drafter.guess(most)
        tokens = tuple(takewhile(lambda token: token >= 0, guess.tokens)) if guess is not None else ()  # no pictures
        if guess is not None and tokens:
            draft.proposal = Proposal(tokens, match_grades(guess.match, len(tokens)))

    def _ask(self, model: DraftModel, drafting: Sequence[EngineSequence], limits: dict[int, int], n_decoding: int) -> None:
        """Let the draft model guess for those who want that, and know nothing better from the text."""
        asking = [sequence for sequence in drafting if self._wants_model(sequence, model, limits[sequence.id])]
        if not asking:
            return
        lengths = self.policy.guesses([self._wish(sequence, model, limits[sequence.id]) for sequence in asking], n_decoding)
        asked = [
            Asked(sequence.id, sequence.tokens, n, sequence.generation.speculation.p_min)
            for sequence, n in zip(asking, lengths, strict=True)
            if n
        ]
        if not asked:
            return
        drafts = {sequence.id: sequence.draft for sequence in asking if sequence.draft is not None}
        least = self.policy.least_chance(n_decoding, len(asked))
        found = model.guess(asked, least, lambda key, prob: drafts[key].modelled.chances([prob_grade(prob)])[0])
        for key, continued in found.items():
            if continued.tokens:
                grades = tuple(map(prob_grade, continued.probs))
                drafts[key].proposal = Proposal(tuple(continued.tokens), grades, by_model=True)

    def _wants_model(self, sequence: EngineSequence, model: DraftModel, limit: int) -> bool:
        draft = sequence.draft
        if draft is None or limit < 1 or not sequence.generation.speculation.uses_model or sequence.generation.media:
            return False
        if len(sequence.tokens) + limit > model.length:
            return False
        return draft.proposal is None or draft.chances(draft.proposal)[0] < draft.chance

    def _wish(self, sequence: EngineSequence, model: DraftModel, limit: int) -> Wish:
        assert sequence.draft is not None
        n_unread = model.n_unread(sequence.id, sequence.tokens)
        return Wish(sequence.draft.chance, limit, n_unread, sequence.n_expected - len(sequence.tokens))

    def _offer(self, sequence: EngineSequence) -> Offer:
        """What was guessed for a sequence, as far as it is likely enough for it."""
        draft = sequence.draft
        assert draft is not None and draft.proposal is not None
        wanted = sequence.generation.speculation
        chances = draft.chances(draft.proposal)
        if not draft.proposal.by_model:  # a model's own probabilities were looked at when it guessed
            unlikely = next((at for at, chance in enumerate(chances) if chance < wanted.p_min), len(chances))
            chances = chances[:unlikely]
        return Offer(chances, least=min(wanted.n_min, wanted.n_max))

    def _make(self, sequence: EngineSequence) -> Drafter:
        kind = sequence.generation.speculation.type
        if kind == "ngram-simple":
            return SuffixSearch()
        if kind == "ngram-cache" and sequence.generation.cache_prompt:
            return SharedDrafter(self._shared)
        return SuffixMap()
