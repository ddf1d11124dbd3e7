"""How long drafts may be: as long as they pay. Pure arithmetic on what was right before and on observed step times.

A drafted token costs a row of a batch whether it turns out right or not. Whether that is cheap depends on model, machine and
on how many sequences share the step, so it is learned; the chance that a guess is right is followed for each request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SMOOTHING = 0.1
"""Weight of the newest observation in the running means."""

STEPS = (4, 8, 16)
"""Matches of fewer tokens than these are counted apart: the longer one is, the more often is what follows right."""

FIRST_CHANCES = (0.3, 0.5, 0.75, 0.9)
"""Chances that are assumed before anything was seen, by length of the match."""

MOST_COUNTED = 8
"""Tokens of one draft that count: a single long one must not outweigh everything else."""

GAIN = 1.05
"""By what factor a further token has to raise the rate."""

RETRY = 128
"""Steps without a draft, though there were guesses, after which a short one is tried to see what it costs now."""

SHORT = 2
"""Tokens of such a try."""

FIRST_COST = 0.5
"""What a drafted row is assumed to cost before that was seen, as a share of a step."""


class Acceptance:
    """How often the guesses for one text were right, by what they rested on. Guesses that were not drafted count too."""

    def __init__(self) -> None:
        self._chances = list(FIRST_CHANCES)

    def chance(self, match: int) -> float:
        """Chance that a token guessed after `match` equal ones is right if all before it are."""
        return self._chances[_class(match)]

    def observe(self, match: int, n_right: int, n_seen: int) -> None:
        """Learn that of `n_seen` guessed tokens, up to the first wrong one, so many were right."""
        at = _class(match)
        for right in [1.0] * min(n_right, MOST_COUNTED) + [0.0] * (n_seen > n_right):
            self._chances[at] += SMOOTHING * (right - self._chances[at])


def _class(match: int) -> int:
    return sum(match >= step for step in STEPS)


@dataclass(frozen=True, slots=True)
class Offer:
    """A guess that there is for one sequence."""

    chance: float
    most: int
    """Tokens that may be drafted."""
    least: int = 0
    """A shorter draft is not wanted."""
    p_min: float = 0.0


class DraftPolicy:
    """Chooses lengths of drafts, step by step."""

    def __init__(self, *, adaptive: bool = True) -> None:
        """Without `adaptive` every draft is as long as it may be."""
        self._adaptive = adaptive
        self._quiet: dict[int, float] = {}
        """Seconds of a step without drafts, by the number of sequences in it."""
        self._row: dict[int, float] = {}
        """Seconds that one drafted token adds to it."""
        self._declined = 0

    def observe(self, n_decoding: int, n_drafted: int, seconds: float) -> None:
        """Learn from a step that did nothing but decode `n_decoding` sequences, one token each and the drafted ones."""
        if not n_drafted:
            self._quiet[n_decoding] = _mean(self._quiet.get(n_decoding), seconds)
        elif (quiet := self._quiet.get(n_decoding)) is not None:
            cost = max(seconds - quiet, 0.02 * quiet) / n_drafted
            self._row[n_decoding] = _mean(self._row.get(n_decoding), cost)

    def lengths(self, offers: Sequence[Offer], n_decoding: int) -> list[int]:
        """How many tokens to draft for each of the offers in a step of `n_decoding` sequences."""
        wanted = [offer.most if offer.chance >= offer.p_min else 0 for offer in offers]
        if self._adaptive:
            paying = self._paying(offers, wanted, n_decoding)
            self._declined = 0 if any(paying) or not any(wanted) else self._declined + 1
            if self._declined >= RETRY:
                self._declined = 0
                best = max(range(len(offers)), key=lambda i: offers[i].chance if wanted[i] else -1.0)
                paying[best] = min(wanted[best], SHORT)
            wanted = paying
        return [n if n >= offer.least else 0 for n, offer in zip(wanted, offers, strict=True)]

    def _paying(self, offers: Sequence[Offer], limits: Sequence[int], n_decoding: int) -> list[int]:
        """Lengths up to the limits with which most tokens a second are to be expected."""
        lengths = [0] * len(offers)
        quiet = self._quiet.get(n_decoding)
        if quiet is None:
            return lengths
        cost = self._row.get(n_decoding, FIRST_COST * quiet / n_decoding)
        tokens, seconds = float(n_decoding), quiet
        worth = sorted(
            ((offer.chance**n, i) for i, offer in enumerate(offers) for n in range(1, limits[i] + 1)), key=lambda one: -one[0]
        )
        for gain, i in worth:
            if gain * seconds <= GAIN * tokens * cost:
                break
            lengths[i] += 1
            tokens, seconds = tokens + gain, seconds + cost
        return lengths


def _mean(old: float | None, new: float) -> float:
    return new if old is None else old + SMOOTHING * (new - old)
