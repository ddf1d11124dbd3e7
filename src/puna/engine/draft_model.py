"""A smaller model that guesses how texts go on, in a context of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from puna.engine.draft_policy import DraftPolicy
from puna.engine.recorder import Recorder
from puna.engine.sequence import common_prefix
from puna.errors import StartupError
from puna.llama.batch import Batch
from puna.llama.context import Context, DecodeError, FloatArray

MOST_READ = 256
"""Tokens that are read in one step, for all sequences together: streams wait for it."""

LEAST_SHARED = 16
"""Tokens in common for which another sequence's cells are taken over."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A text that is to be continued."""

    key: int
    """The request that it belongs to."""
    tokens: list[int]
    most: int
    """Tokens that are wanted."""
    p_min: float = 0.0
    """A token that the draft model holds less likely is not wanted, nor anything after it."""


@dataclass(slots=True)
class Continued:
    """How the draft model continues it."""

    tokens: list[int] = field(default_factory=list)
    probs: list[float] = field(default_factory=list)
    chance: float = 1.0
    """That all of them are right."""


@dataclass(slots=True)
class Held:
    """A text in the draft model's context."""

    seat: int
    tokens: list[int] = field(default_factory=list)
    """Those that have cells."""


class DraftModel:
    """Reads what sequences have come to, as far as it is asked to guess, and guesses for several at once.

    Nothing depends on what it says but how much of it turns out right: whatever fails, it forgets everything and guesses
    nothing for the moment.
    """

    def __init__(
        self,
        make: Callable[[int], Context],
        *,
        policy: DraftPolicy,
        clock: Callable[[], float],
        n_seats: int,
        n_tokens: int,
        length: int,
        first: int,
        most: int,
        n_batch: int,
        recorder: Recorder,
        warn: Callable[[str], None],
    ) -> None:
        """`make` makes a context of so many cells for `n_seats` sequences, which share them; the first one gets `first`, and
        no later one more than `most`. Only the first `n_tokens` of its vocabulary are guessed, and only for texts of up to
        `length` tokens.

        Raises `StartupError` for want of memory.
        """
        self._make = make
        self._policy = policy
        self._clock = clock
        self._seats = list(range(n_seats))
        self._n_tokens = n_tokens
        self.length = length
        self._most = most
        self._recorder = recorder
        self._warn = warn
        self._batch = Batch(n_batch)
        self._cells = first
        self._context = make(first)
        self._held: dict[int, Held] = {}

    def n_unread(self, key: int, tokens: list[int]) -> int:
        """Tokens that would have to be read before anything can be guessed; at least the last one."""
        held = self._held.get(key)
        return len(tokens) - (self._known(held, tokens) if held else 0)

    def forget(self, key: int) -> None:
        """Free the cells of a text that has ended or waits."""
        if (held := self._held.pop(key, None)) is not None:
            self._context.drop(held.seat)
            self._seats.append(held.seat)

    def guess(
        self, asked: Sequence[Asked], least_chance: float, chance_of: Callable[[int, float], float]
    ) -> dict[int, Continued]:
        """How these texts go on, by key; some are left out while they are still being read.

        A draft ends where the chance that it is right as a whole falls below `least_chance`; `chance_of` tells it of a text's
        token from what the draft model thinks of it.
        """
        asked = [one for one in asked if one.most > 0 and len(one.tokens) + one.most <= self.length]
        asked = self._make_room(asked)
        if not asked:
            return {}
        self._recorder.record("decode", [one.key for one in asked])
        try:
            return self._guess(asked, least_chance, chance_of)
        except DecodeError as error:
            self._warn(f"the draft model failed, and begins anew: {error}")
            self._clear()
            return {}

    def warm_up(self) -> None:
        """Compute two tokens and forget them. Raises `DecodeError`."""
        self._batch.clear()
        self._batch.add([0, 0], 0, 0, n_logits=1)
        self._context.decode(self._batch)
        self._context.drop(0)

    # reading

    def _known(self, held: Held, tokens: list[int]) -> int:
        """Tokens of a text that need not be read: never all of them, for the last one's logits are wanted."""
        n = len(held.tokens)
        if n < len(tokens) and tokens[:n] == held.tokens:
            return n
        return min(common_prefix(held.tokens, tokens), len(tokens) - 1)

    def _take_seat(self, one: Asked) -> Held:
        """Where a text is held, cut to what it still begins with."""
        held = self._held.get(one.key)
        if held is None:
            self._held[one.key] = held = Held(self._seats.pop())
            self._share(held, one)
        known = self._known(held, one.tokens)
        if known < len(held.tokens):
            if not self._context.cut(held.seat, known):
                raise DecodeError(f"{len(held.tokens)} tokens could not be cut to {known}")
            del held.tokens[known:]
        return held

    def _share(self, held: Held, one: Asked) -> None:
        """Take over what another text has in common with a new one."""
        others = [other for other in self._held.values() if other is not held]
        best = max(others, key=lambda other: common_prefix(other.tokens, one.tokens), default=None)
        if best is None:
            return
        n = min(common_prefix(best.tokens, one.tokens), len(one.tokens) - 1)
        if n >= LEAST_SHARED:
            self._context.copy(best.seat, held.seat, 0, n)
            held.tokens = one.tokens[:n]

    def _guess(
        self, asked: Sequence[Asked], least_chance: float, chance_of: Callable[[int, float], float]
    ) -> dict[int, Continued]:
        texts = sorted(((one, self._take_seat(one)) for one in asked), key=lambda text: len(text[0].tokens) - len(text[1].tokens))
        ready: list[tuple[Asked, Held, int]] = []
        budget, n_read = MOST_READ, 0
        began = self._clock()
        self._batch.clear()
        for one, held in texts:
            pending = one.tokens[len(held.tokens) :]
            count = min(len(pending), budget, self._batch.capacity - self._batch.n)
            if not count:
                continue
            ends = count == len(pending)
            row = self._batch.add(pending[:count], len(held.tokens), held.seat, n_logits=int(ends))
            budget, n_read = budget - count, n_read + count
            held.tokens += pending[:count]
            if ends:
                ready.append((one, held, row))
        self._context.decode(self._batch)
        if n_read > 2 * len(texts):
            self._policy.observe_reading(n_read, self._clock() - began)
        return self._continue(ready, least_chance, chance_of)

    # guessing

    def _continue(
        self, ready: list[tuple[Asked, Held, int]], least_chance: float, chance_of: Callable[[int, float], float]
    ) -> dict[int, Continued]:
        found = {one.key: Continued() for one, _, _ in ready}
        while ready:
            going = [(one, held) for one, held, row in ready if self._add(one, found[one.key], row, least_chance, chance_of)]
            began = self._clock()
            self._batch.clear()
            ready = []
            for one, held in going:
                token = found[one.key].tokens[-1]
                row = self._batch.add([token], len(held.tokens), held.seat, n_logits=1)
                held.tokens.append(token)
                ready.append((one, held, row))
            if ready:
                self._context.decode(self._batch)
                self._policy.observe_guessing(len(ready), self._clock() - began)
        return found

    def _add(
        self, one: Asked, so_far: Continued, row: int, least_chance: float, chance_of: Callable[[int, float], float]
    ) -> bool:
        """Add the likeliest token, unless it is not likely enough; whether to go on."""
        token, prob = likeliest(self._context.logits(row)[: self._n_tokens])
        if prob < one.p_min:
            return False
        so_far.chance *= chance_of(one.key, prob)
        if so_far.chance < least_chance:
            return False
        so_far.tokens.append(token)
        so_far.probs.append(prob)
        return len(so_far.tokens) < one.most

    # cells

    def _make_room(self, asked: Sequence[Asked]) -> list[Asked]:
        """Those of the texts that there is room for, after making some: texts that nobody asks about go first."""
        kept: list[Asked] = []
        needed = 0
        for one in asked:
            size = len(one.tokens) + one.most
            if needed + size <= self._most and len(kept) < len(self._held) + len(self._seats):
                kept.append(one)
                needed += size
        keys = {one.key for one in kept}
        others = {key: len(held.tokens) for key, held in self._held.items() if key not in keys}
        while others and (
            needed + sum(others.values()) > self._most or len(kept) + len(others) > len(self._held) + len(self._seats)
        ):
            key = next(iter(others))
            self.forget(key)
            del others[key]
        total = needed + sum(others.values())
        return kept if total <= self._cells or self._grow(total) else []

    def _grow(self, needed: int) -> bool:
        """Go on in a larger context, which is read anew; False where there is no memory for it."""
        cells = self._cells
        while cells < needed:
            cells *= 2
        self._clear()
        self._context.close()
        try:
            self._context = self._make(min(cells, self._most))
        except StartupError as error:
            self._warn(f"no memory for {cells} tokens of drafts: {error.message}")
            self._context = self._make(self._cells)
            self._most = self._cells
            return False
        self._cells = min(cells, self._most)
        return True

    def _clear(self) -> None:
        for key in list(self._held):
            self.forget(key)
        self._context.clear()


def likeliest(logits: FloatArray) -> tuple[int, float]:
    """The token with the largest logit, and its probability."""
    token = int(logits.argmax())
    return token, float(1.0 / np.exp(logits - logits[token]).sum())
