"""Drafts for a step: tokens that may follow, computed along with what is known to come, and kept as far as they are right."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from puna.engine.draft_policy import Acceptance, DraftPolicy, Offer
from puna.engine.ngrams import Drafter, Guess, SharedDrafter, SharedNgrams, SuffixMap, SuffixSearch
from puna.engine.scheduler import Piece, Plan
from puna.engine.sequence import Sequence, common_prefix
from puna.speculation import MOST_DRAFTED


@dataclass(slots=True)
class Draft:
    """A sequence's drafter and what it has been worth."""

    drafter: Drafter
    acceptance: Acceptance = field(default_factory=Acceptance)
    n_fed: int = 0
    """Tokens of the sequence that the drafter knows, those that context shifts dropped included."""
    guess: Guess | None = None
    """What was guessed for the last step, drafted or not."""


class Drafting:
    """Puts drafts into plans. Only where nothing is read: a prompt's pieces fill a step anyway, and streams wait for it."""

    def __init__(self, policy: DraftPolicy, *, can_cut: bool) -> None:
        """Without `can_cut` what turns out wrong could not be taken back, and nothing is drafted."""
        self.policy = policy
        self._can_cut = can_cut
        self._shared = SharedNgrams()

    def extend(self, plan: Plan, *, capacity: int, length: int) -> Plan:
        """The plan with drafts: up to `capacity` rows in all, and `length` tokens of each sequence."""
        if plan.n_prefill or not self._can_cut:
            return plan
        offers: list[Offer] = []
        guesses: dict[int, Guess] = {}
        room = capacity - sum(piece.count for piece in plan.pieces)
        for piece in plan.pieces:
            if (limit := min(room, self._limit(piece, length))) > 0 and (found := self._guess(piece.sequence, limit)):
                guesses[piece.sequence.id], offer = found
                offers.append(offer)
                room -= offer.most
        if not guesses:
            return plan
        chosen = dict(zip(guesses, self.policy.lengths(offers, plan.n_decoding), strict=True))
        return replace(plan, pieces=tuple(self._with_draft(piece, guesses, chosen) for piece in plan.pieces))

    def observe(self, plan: Plan, seconds: float) -> None:
        """Learn what a step cost."""
        if not plan.n_prefill and all(piece.count == 1 for piece in plan.pieces):
            self.policy.observe(plan.n_decoding, plan.n_drafted, seconds)

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

    def _guess(self, sequence: Sequence, limit: int) -> tuple[Guess, Offer] | None:
        draft = sequence.draft
        if draft is None:
            sequence.draft = draft = Draft(self._make(sequence))
        n_fresh = len(sequence.tokens) + sequence.n_dropped - draft.n_fed
        fresh = sequence.tokens[max(0, len(sequence.tokens) - n_fresh) :]
        if draft.guess is not None:
            n_right = common_prefix(list(draft.guess.tokens), fresh)
            draft.acceptance.observe(draft.guess.match, n_right, min(len(draft.guess.tokens), len(fresh)))
        draft.drafter.feed(fresh)
        draft.n_fed += n_fresh
        draft.guess = guess = _tokens_only(draft.drafter.guess(limit))
        if guess is None:
            return None
        wanted = sequence.generation.speculation
        chance = draft.acceptance.chance(guess.match)
        return guess, Offer(chance, len(guess.tokens), least=min(wanted.n_min, wanted.n_max), p_min=wanted.p_min)

    def _make(self, sequence: Sequence) -> Drafter:
        kind = sequence.generation.speculation.type
        if kind == "ngram-simple":
            return SuffixSearch()
        if kind == "ngram-cache" and sequence.generation.cache_prompt:
            return SharedDrafter(self._shared)
        return SuffixMap()

    @staticmethod
    def _with_draft(piece: Piece, guesses: dict[int, Guess], chosen: dict[int, int]) -> Piece:
        length = chosen.get(piece.sequence.id, 0)
        return replace(piece, draft=guesses[piece.sequence.id].tokens[:length]) if length else piece


def _tokens_only(guess: Guess | None) -> Guess | None:
    """A guess up to where a picture followed."""
    if guess is None or min(guess.tokens) >= 0:
        return guess
    n = next(i for i, token in enumerate(guess.tokens) if token < 0)
    return replace(guess, tokens=guess.tokens[:n]) if n else None
