"""The context and its length: small at first, as large as the longest sequence needs, small again when none does."""

from __future__ import annotations

import time
from collections.abc import Callable

from puna.engine.memory import Memory, MemoryFault
from puna.engine.runner import Runner
from puna.engine.sequence import Sequence
from puna.engine.shrinking import ShrinkPolicy
from puna.engine.sizing import Size
from puna.errors import StartupError
from puna.llama.context import Context
from puna.llama.state import State

MakeContext = Callable[[int, int], Context]
"""Makes a context for sequences of so many tokens, so many at once. Raises `StartupError` for want of memory."""


class Arena:
    """Owns the context; `memory` and `runner` work on whichever one there is.

    A context for 16 sequences of a model's full length may take gigabytes that most servers never need, and seconds to
    clear. Saved states do not depend on the context's size, so a larger one takes over in about that time when a
    sequence comes that needs it, and a smaller one when nothing has needed it for a while.
    """

    def __init__(
        self,
        size: Size,
        make: MakeContext,
        context: Context,
        memory: Memory,
        runner: Runner,
        warn: Callable[[str], None],
    ) -> None:
        """`context` is made for `size.first` tokens and `size.n_slots` sequences."""
        self._size = size
        self._make = make
        self._context = context
        self.memory = memory
        self.runner = runner
        self._warn = warn
        self.policy = ShrinkPolicy()
        self.length = size.first
        """Tokens of one sequence that there is room for now."""
        self.limit = size.n_ctx
        """Tokens of one sequence that there can be room for."""
        self.seats = size.n_slots
        """Sequences that there is room for now."""
        self._most_seats = size.n_slots
        """As many at most, since there was no memory for more."""

    def least(self, *, reproducible: bool) -> int:
        """Tokens that a sequence needs room for however short it is."""
        return self._size.least(reproducible=reproducible)

    def may_shift(self, sequence: Sequence) -> bool:
        """Whether a sequence that outgrows the context drops its oldest part and goes on."""
        return sequence.generation.context_shift and self.memory.can_shift and not sequence.runs

    def seats_for(self, needed: int, wanted: int) -> int:
        """How many sequences may run while one of them needs so many tokens and `wanted` run or wait."""
        return self._form(needed, wanted)[1]

    def has_room(self, needed: int, wanted: int) -> bool:
        """Whether the context need not grow for that."""
        return self._form(needed, wanted) == (self.length, self.seats)

    def _form(self, needed: int, wanted: int) -> tuple[int, int]:
        """Length and seats that a context needs, never less than there is unless fewer such long ones have room."""
        length = max(self.length, self._size.next_length(needed))
        made = min(self._size.seats_made(length, wanted), self._most_seats)
        return length, max(made, self.seats) if length == self.length else made

    def grow(self, needed: int, wanted: int, running: list[Sequence]) -> bool:
        """Make room for a sequence of `needed` tokens; False when there is no memory for it, and everything is as before.

        `running` are the sequences to carry over, at most `seats_for(needed, wanted)`; they get new seats.
        """
        length, seats = self._form(needed, wanted)
        began = time.monotonic()
        if self._change(length, seats, running):
            self.policy.grew(time.monotonic(), time.monotonic() - began)
            return True
        if length > self.length:
            self.limit = self.length
        else:
            self._most_seats = self.seats
        return False

    def shrink(self, expected: int, wanted: int, running: list[Sequence]) -> bool:
        """Make the context smaller if `wanted` sequences of at most `expected` tokens would have fitted for a while."""
        now = time.monotonic()
        length = self._size.next_length(expected)
        seats = min(self._size.seats_made(length, wanted), self._most_seats)
        if length > self.length or (length == self.length and seats >= self.seats):
            self.policy.needed(now)
            return False
        if self.policy.wait(now) > 0:
            return False
        if not self._change(length, seats, running):
            self.policy.needed(now)  # it is not tried again at once
            return False
        self._most_seats = self._size.n_slots
        self.policy.shrank(time.monotonic(), time.monotonic() - now)
        return True

    @property
    def shrinks_in(self) -> float | None:
        """Seconds until `shrink` makes the context smaller if nothing comes; None when it is as small as it gets."""
        return self.policy.wait(time.monotonic()) if self.length > self._size.first else None

    def _change(self, length: int, seats: int, running: list[Sequence]) -> bool:
        """Go on with another context, or with one as before where there is no memory for it."""
        states = [self.memory.rest(sequence.seat) if sequence.n_done else None for sequence in running]
        self._context.close()
        try:
            self._context = self._make(length, seats)
            self.length, self.seats = length, seats
            changed = True
        except StartupError as error:
            self._warn(f"no memory for {seats} sequences of {length} tokens: {error}")
            self._context = self._make(self.length, self.seats)
            changed = False
        self.memory.rebind(self._context)
        self.runner.rebind(self._context)
        for seat, (sequence, state) in enumerate(zip(running, states, strict=True)):
            sequence.seat = seat
            if state is not None:
                self._wake(sequence, state)
        return changed

    def swap(self, one: Sequence, other: Sequence) -> None:
        """Let two sequences change seats."""
        held = [(sequence, self.memory.rest(sequence.seat)) for sequence in (one, other) if sequence.n_done]
        for sequence, _ in held:
            self.memory.drop(sequence.seat)
        one.seat, other.seat = other.seat, one.seat
        for sequence, state in held:
            self._wake(sequence, state)

    def clean(self, running: list[Sequence]) -> None:
        """Clear all cells, those that nobody holds too, and put back what `running` hold.

        For infinities in the cells of a sequence that is gone: they would spoil whoever comes near them, because zero
        times infinity is no number.
        """
        held = [(sequence, self.memory.rest(sequence.seat)) for sequence in running if sequence.n_done]
        self._context.clear()
        for sequence, state in held:
            self._wake(sequence, state)

    def _wake(self, sequence: Sequence, state: State) -> None:
        try:
            self.memory.wake(sequence.seat, state, sequence.held)
        except MemoryFault as error:
            self._warn(f"a sequence has to be read again in another place: {error}")
            sequence.n_done = sequence.n_fresh = 0
