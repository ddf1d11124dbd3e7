"""How long drafts may be: as long as they pay. Pure arithmetic on what was right before and on what steps cost.

A drafted token costs a row of a batch whether it turns out right or not. Whether that is cheap depends on model, machine and
on how many sequences share the step, so it is learned; the chance that a guess is right is followed for each request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul

from puna.engine.draft_costs import StepCosts

SMOOTHING = 0.2
"""Weight of the newest observation in the running means."""

MATCHES = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 32)
"""Guesses from fewer equal tokens than these are counted apart: the longer a match is, the more often is what follows right,
but for what changes from one repetition to the next, which comes at a place of its own."""

MATCH_CHANCES = (0.6, 0.7, 0.7, 0.4, 0.6, 0.6, 0.8, 0.8, 0.8, 0.8, 0.9, 0.9, 0.9, 0.95)
"""Chances that are assumed before anything was seen, by length of the match. Those below 3 stand in the middle of a copy."""

PROBS = (0.3, 0.5, 0.75, 0.9)
"""Guesses of a model that was less sure than these are counted apart."""

PROB_CHANCES = (0.2, 0.4, 0.6, 0.8, 0.9)

GAIN = 1.05
"""By what factor drafts have to raise the rate."""

RETRY = 128
"""Steps without a draft, though there were guesses, after which a short one is tried to see what it costs now."""

SHORT = 2
"""Tokens of such a try."""

LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 24, 31, 48, 63)
"""Lengths of a model's draft that are considered."""

SLOW = 0.02
"""Weight of one token in the running mean over all requests."""


class Acceptance:
    """How often guesses for one text were right, by grade. Guesses that were not drafted count too."""

    def __init__(self, first: Sequence[float]) -> None:
        self._chances = list(first)

    def chances(self, grades: Sequence[int]) -> list[float]:
        """For tokens of these grades, the chance of each to be right if all before it are."""
        return [self._chances[grade] for grade in grades]

    def observe(self, grades: Sequence[int], n_right: int) -> None:
        """Learn that of tokens of these grades the first `n_right` were right, and the next one, if there is one, was not."""
        for at, grade in enumerate(grades[: n_right + 1]):
            self._chances[grade] += SMOOTHING * ((at < n_right) - self._chances[grade])


def match_grades(match: int, n: int) -> tuple[int, ...]:
    """Grades of `n` guessed tokens, the first of which rests on `match` equal ones and each further one on one more."""
    return tuple(sum(match + at >= step for step in MATCHES) for at in range(n))


def prob_grade(prob: float) -> int:
    """Grade of a token that a model gives this probability."""
    return sum(prob >= step for step in PROBS)


@dataclass(frozen=True, slots=True)
class Offer:
    """A guess that there is for one sequence."""

    chances: Sequence[float]
    """For each of its tokens, the chance to be right if all before it are."""
    least: int = 0
    """A shorter draft is not wanted."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A sequence for which a draft model might guess."""

    chance: float
    """Of each token to be right if all before it are."""
    most: int
    """Tokens that may be drafted."""
    n_unread: int
    """Tokens that the model would have to read first."""
    n_expected: int
    """Tokens that are still to come, as far as is expected."""


class DraftPolicy:
    """Chooses lengths of drafts, step by step."""

    def __init__(self, *, adaptive: bool = True, model_share: float = 0.0) -> None:
        """Without `adaptive` every draft is as long as it may be. `model_share` is the draft model's size as a share of the
        model's, which stands for its cost until that was seen."""
        self.adaptive = adaptive
        self._share = model_share
        self._steps = StepCosts()
        self._guessing = StepCosts()
        self._reading: float | None = None
        """Seconds in which the draft model reads a token."""
        self.usual = 0.7
        """Chance of a model's guess, over all requests."""
        self._declined = self._declined_model = 0

    def observe(self, n_decoding: int, n_drafted: int, seconds: float) -> None:
        """Learn from a step that did nothing but decode `n_decoding` sequences, one token each and the drafted ones."""
        self._steps.observe(n_decoding + n_drafted, seconds)

    def observe_guessing(self, n: int, seconds: float) -> None:
        """Learn what the draft model took to guess one token for each of `n` sequences."""
        self._guessing.observe(n, seconds)

    def observe_reading(self, n: int, seconds: float) -> None:
        """Learn what it took to read `n` tokens."""
        one = seconds / n
        self._reading = one if self._reading is None else self._reading + SMOOTHING * (one - self._reading)

    def observe_chance(self, n_right: int, n_seen: int) -> None:
        """Learn that of a model's guess, up to the first wrong token, so many were right."""
        for at in range(min(n_seen, n_right + 1)):
            self.usual += SLOW * ((at < n_right) - self.usual)

    def lengths(self, offers: Sequence[Offer], n_decoding: int) -> list[int]:
        """How many tokens to draft for each of the offers in a step of `n_decoding` sequences."""
        wanted = [len(offer.chances) for offer in offers]
        if self.adaptive:
            paying = self._paying(offers, n_decoding)
            self._declined = 0 if any(paying) or not any(wanted) else self._declined + 1
            if self._declined >= RETRY:
                self._declined = 0
                best = max(range(len(offers)), key=lambda i: offers[i].chances[0] if wanted[i] else -1.0)
                paying[best] = min(wanted[best], SHORT)
            wanted = paying
        return [n if n >= offer.least else 0 for n, offer in zip(wanted, offers, strict=True)]

    def _paying(self, offers: Sequence[Offer], n_decoding: int) -> list[int]:
        """Lengths with which most tokens a second are to be expected."""
        lengths = [0] * len(offers)
        quiet = self._steps.seen(n_decoding)
        if quiet is None:
            return lengths
        gains = ((gain, i) for i, offer in enumerate(offers) for gain in accumulate(offer.chances, mul))
        worth = sorted(gains, key=lambda one: -one[0])
        rates = [n_decoding / quiet * GAIN]
        tokens = float(n_decoding)
        for n, (gain, _) in enumerate(worth, 1):
            tokens += gain
            rates.append(tokens / self._steps.expected(n_decoding + n, n_decoding))
        for _, i in worth[: rates.index(max(rates))]:
            lengths[i] += 1
        return lengths

    # a draft model, which costs something before there is a guess

    def guesses(self, wishes: Sequence[Wish], n_decoding: int) -> list[int]:
        """For how many tokens to ask the draft model for each of the wishes in a step of `n_decoding` sequences."""
        if not self.adaptive:
            return [wish.most for wish in wishes]
        quiet = self._steps.seen(n_decoding)
        if quiet is None or not wishes:
            return [0] * len(wishes)
        best, seconds_a_token = self._best_guesses(wishes, n_decoding, quiet)
        saved = quiet / n_decoding - seconds_a_token
        reading = self._reading if self._reading is not None else self._guess_seconds(1, quiet)
        best = [
            n if wish.n_unread <= 1 or wish.n_unread * reading <= wish.n_expected * saved else 0
            for n, wish in zip(best, wishes, strict=True)
        ]
        self._declined_model = 0 if any(best) else self._declined_model + 1
        at = min(range(len(wishes)), key=lambda i: (wishes[i].n_unread, -wishes[i].chance))
        if self._declined_model >= RETRY and wishes[at].n_unread <= 2 * RETRY:
            self._declined_model = 0
            best[at] = min(wishes[at].most, SHORT)
        return best

    def least_chance(self, n_decoding: int, n_guessing: int) -> float:
        """Chance below which a further token of a model's draft costs more than it can bring."""
        quiet = self._steps.seen(n_decoding)
        if not self.adaptive or quiet is None:
            return 0.0
        row = (self._steps.expected(n_decoding + n_guessing, n_decoding) - quiet) / n_guessing
        return min(0.9, (self._guess_seconds(n_guessing, quiet) / n_guessing + row) * n_decoding / quiet)

    def _best_guesses(self, wishes: Sequence[Wish], n_decoding: int, quiet: float) -> tuple[list[int], float]:
        """The lengths with which most tokens a second are to be expected, and the seconds that one takes then."""
        order = sorted(range(len(wishes)), key=lambda i: -wishes[i].chance)
        best, rate = [0] * len(wishes), n_decoding / quiet * GAIN
        for n_guessing in range(1, len(wishes) + 1):
            asked = order[:n_guessing]
            one = self._guess_seconds(n_guessing, quiet)
            longest = max(wishes[i].most for i in asked)
            for length in sorted({*(n for n in LENGTHS if n <= longest), longest}):
                counts = {i: min(length, wishes[i].most) for i in asked}
                tokens = n_decoding + sum(_geometric(wishes[i].chance, n) for i, n in counts.items())
                step = self._steps.expected(n_decoding + sum(counts.values()), n_decoding)
                if tokens / (step + length * one) > rate:
                    rate = tokens / (step + length * one)
                    best = [counts.get(i, 0) for i in range(len(wishes))]
        return best, 1 / rate

    def _guess_seconds(self, n: int, quiet: float) -> float:
        """What one token for each of `n` sequences takes the draft model."""
        seen = self._guessing.seen(n)
        if seen is not None:
            return seen
        one = self._guessing.seen(1)
        return self._share * quiet if one is None else self._guessing.expected(n, 1)


def _geometric(chance: float, n: int) -> float:
    """Tokens to be expected of `n`, each of which is right with this chance if all before it are."""
    return sum(chance**at for at in range(1, n + 1))
