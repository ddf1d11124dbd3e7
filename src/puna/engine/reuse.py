"""Not reading again what was read before: prefixes from running sequences, from leaders, from host memory, from disk."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import itemgetter

from puna.engine.checkpoints import choose_checkpoints
from puna.engine.media.runs import Runs
from puna.engine.memory import Memory, MemoryFault
from puna.engine.pins import Pin, Pins
from puna.engine.rearranging import Rearranger
from puna.engine.scheduler import Scheduler
from puna.engine.sequence import MOVED, Sequence, common_prefix
from puna.engine.stats import Counters
from puna.engine.tiers import Found, HostTier, LowerTier, Stored
from puna.llama.context import DecodeError
from puna.llama.state import State, StateFormatError

LEAST_FETCHED = 16
"""Fewer tokens than this are read again rather than brought from below host memory."""


class PrefixReuse:
    """Fills a seat with the longest prefix that can be had for nothing, and keeps what a leaving sequence has read."""

    def __init__(
        self,
        scheduler: Scheduler,
        memory: Memory,
        host: HostTier,
        counters: Counters,
        warn: Callable[[str], None],
        *,
        can_cut: bool,
    ) -> None:
        self.lower: LowerTier | None = None
        """Where to look for what host memory does not have."""
        self.pins = Pins()
        self._scheduler = scheduler
        self._memory = memory
        self._host = host
        self._counters = counters
        self._warn = warn
        self._can_cut = can_cut
        self._rearranger = Rearranger(memory, host)

    def find(self, sequence: Sequence, *, below: bool = True) -> None:
        """Give a sequence in an empty seat the longest known prefix, or a leader to wait for.

        Nothing to one that wants to see its whole prompt computed, or computed in its own way. With `below` it may wait
        for what lies below host memory.
        """
        wanted = sequence.generation
        if not wanted.cache_prompt or wanted.prompt_probs or wanted.deterministic or sequence.n_dropped:
            return
        stored, n_stored = self._find_stored(sequence)
        pin, n_pinned = self._find_pinned(sequence)
        n_rested = max(n_stored, n_pinned)
        leader, n_shared = self._scheduler.best_running(sequence)
        n_now = sequence.runs.clip(min(n_shared, leader.n_done)) if leader else 0
        waits = leader is not None and self._scheduler.should_wait(leader, n_shared, max(n_rested, n_now))
        if below and self._fetch(sequence, n_shared if waits else max(n_rested, n_now)):
            return
        if leader and waits:
            sequence.leader, sequence.leader_goal = leader, n_shared
            if not self._can_cut and n_shared not in leader.checkpoints:
                insort(leader.checkpoints, n_shared)  # what two have in common others may have too
        elif leader and n_now and n_now >= n_rested:
            self._copy(leader, [(sequence, n_now)])
        elif pin is not None and n_pinned > n_stored:
            self._wake_state(sequence, pin.state, n_pinned, pin.key)
        elif stored:
            self._wake(sequence, stored)
        if not self._can_cut and self._host.capacity:
            self._plan_checkpoints(sequence)

    def _plan_checkpoints(self, sequence: Sequence) -> None:
        n_shared = max(
            self._host.shared(sequence.tokens, sequence.key_at(sequence.n_prompt - 1)), self._scheduler.most_shared(sequence)
        )
        n_known = max(sequence.n_done, sequence.leader_goal)
        chosen = choose_checkpoints(sequence.n_prompt, n_known=n_known, n_shared=n_shared)
        chosen += [run.end for run in sequence.runs][-1:]  # the same picture under another question
        lengths = {sequence.runs.clip(length) for length in chosen}
        sequence.checkpoints = sorted(length for length in lengths if n_known < length < len(sequence.tokens))

    def checkpoint(self, sequence: Sequence) -> None:
        """Keep a sequence's state if it has just reached a point where that is wanted."""
        reached = [length for length in sequence.checkpoints if length <= sequence.n_done]
        del sequence.checkpoints[: len(reached)]
        if reached and reached[-1] == sequence.n_done:
            self.keep(sequence)
            self._counters.checkpoints += 1

    def serve_arrivals(self) -> None:
        """Give what was brought from below to those who wait for it."""
        for sequence in list(self._scheduler.running):
            if sequence.fetching is not None and sequence.fetching.done():
                arrived = sequence.fetching.result()
                sequence.fetching, sequence.arriving = None, 0
                self._arrive(sequence, arrived, sequence.arriving_key)

    def serve_followers(self) -> None:
        """Copy to everybody whose leader has got far enough; look anew for those whose leader has left."""
        for followers in self._scheduler.ready_followers():
            leader = followers[0].leader
            assert leader is not None
            targets = [(sequence, sequence.leader_goal) for sequence in followers]
            for sequence in followers:
                sequence.leader, sequence.leader_goal = None, 0
            self._copy(leader, targets)
        for sequence in list(self._scheduler.running):
            if sequence.leader_goal and sequence.leader is None:
                sequence.leader_goal = 0
                self.find(sequence)

    def rearrange(self, sequence: Sequence, room: int) -> None:
        """Move cells to where a prompt that allows it has their tokens. Directly before a decode, which completes it.

        `room` is how many tokens a seat has cells for.
        """
        if not self._rearranger.wants(sequence):
            return
        try:
            gain = self._rearranger.rearrange(sequence, room)
        except MemoryFault as error:
            self._warn(f"a stored prompt was not moved: {error}")
            sequence.n_done = sequence.n_cached = 0
        else:
            self._counters.cache_tokens += gain
            self._counters.cache_moved += gain
            sequence.n_cached += gain

    def verify(self) -> None:
        """Make sure that every running sequence has the cells that its token list says; one that has not is read again."""
        for sequence in self._scheduler.running:
            held = self._memory.length(sequence.seat)
            if held != sequence.held:
                self._warn(f"a sequence of {sequence.held} tokens holds {held} in memory; it is read again")
                self._memory.drop(sequence.seat)
                sequence.n_done = sequence.n_fresh = sequence.n_cached = 0

    def keep(self, sequence: Sequence) -> None:
        """Put what a sequence has in memory to rest, unless that is stored already or not wanted."""
        length = sequence.runs.clip(sequence.n_done)
        tokens = sequence.tokens[:length]
        if (
            not tokens
            or (length < sequence.n_done and not self._can_cut)
            or sequence.n_dropped
            or not sequence.generation.cache_prompt
            or self._host.idle
            or self._host.covers(tokens, sequence.key_at(len(tokens)))
        ):
            return
        held = self._memory.length(sequence.seat)
        if held != sequence.held:
            self._warn(f"a sequence of {sequence.held} tokens holds {held} in memory; it is not kept")
            return
        try:
            if length < sequence.n_done:  # it leaves in the middle of a run, which nobody could go on with
                self._memory.cut(sequence.seat, sequence.runs.span(length))
                sequence.n_done = length
            self._host.put(tokens, self._memory.rest(sequence.seat), sequence.key_at(len(tokens)))
        except (DecodeError, MemoryFault, StateFormatError) as error:
            self._warn(f"a prompt could not be kept: {error}")

    def _beginnings(self, sequence: Sequence) -> list[tuple[list[int], bytes]]:
        """A prompt, and its beginnings up to where other adapters apply, each with its namespace.

        The last token is there to be left out: it is computed afresh, or under other adapters.
        """
        starts = [sequence.tokens[: phase.start + 1] for phase in sequence.phases[1:]]
        found = [(tokens, sequence.key_at(len(tokens) - 1)) for tokens in (*starts, sequence.tokens)]
        if sequence.generation.n_cache_reuse and not sequence.moved:
            found.append((sequence.tokens, found[-1][1] + MOVED))
        return found

    def _find_stored(self, sequence: Sequence) -> tuple[Found | None, int]:
        """The longest prefix in host memory, and its length."""
        stored = (self._host.find(tokens, key) for tokens, key in self._beginnings(sequence))
        found = [one for one in map(partial(_whole_runs, sequence.runs), stored) if one is not None]
        best = max(found, key=lambda one: one.length, default=None)
        return best, best.length if best else 0

    def _find_pinned(self, sequence: Sequence) -> tuple[Pin | None, int]:
        """The longest prefix among the restored prompts, and its length."""
        whole = not self._can_cut
        pins = (self.pins.find(tokens, key, whole=whole) for tokens, key in self._beginnings(sequence))
        return max(((pin, sequence.runs.clip(length)) for pin, length in pins), key=itemgetter(1))

    def _fetch(self, sequence: Sequence, n_known: int) -> bool:
        """Let a sequence wait for a prefix from below, if that is faster than reading what it has beyond `n_known`."""
        if self.lower is None:
            return False
        for tokens, key in self._beginnings(sequence):
            offer = self.lower.find(tokens[:-1], key)
            if offer is None or offer.length - n_known < LEAST_FETCHED or offer.length <= sequence.arriving:
                continue
            if offer.length - n_known > offer.seconds * self._counters.prompt_rate:
                sequence.arriving, sequence.arriving_key = offer.length, key
                sequence.fetching = self.lower.fetch(tokens[:-1], key)
        return sequence.fetching is not None

    def _arrive(self, sequence: Sequence, arrived: Stored | None, key: bytes) -> None:
        """Use what has come, through host memory where that has room for it."""
        if arrived is not None:
            tokens, state = arrived
            try:
                self._host.put(tokens, state, key)
            except StateFormatError as error:
                self._refuse(sequence, len(tokens), key, error)
                arrived = None
            if arrived is not None and not self._host.covers(tokens, key):
                length = sequence.runs.clip(common_prefix(list(tokens), sequence.tokens[:-1]))
                self._wake_state(sequence, state, length, key)
                self._counters.disk_hits += sequence.n_cached > 0
                return
        self.find(sequence, below=False)
        self._counters.disk_hits += arrived is not None and sequence.n_cached > 0

    def _wake(self, sequence: Sequence, found: Found) -> None:
        try:
            state = self._host.load(found)
        except StateFormatError as error:
            self._refuse(sequence, found.length, found.key, error)
            self._host.discard(found)
        else:
            if not self._wake_state(sequence, state, found.length, found.key):
                self._host.discard(found)

    def _wake_state(self, sequence: Sequence, state: State, length: int, key: bytes) -> bool:
        """Put the first `length` tokens of a state into a sequence's seat; False when the engine does not take it."""
        try:
            self._memory.wake(sequence.seat, state, sequence.runs.span(length))
        except (MemoryFault, StateFormatError) as error:
            self._refuse(sequence, length, key, error)
            return False
        sequence.moved = key.endswith(MOVED)
        self._credit(sequence, length)
        return True

    def _refuse(self, sequence: Sequence, length: int, key: bytes, error: Exception) -> None:
        """Say why a state was not used. It may have come from below: it must not come again."""
        self._warn(f"a stored prompt was not used: {error}")
        if self.lower is not None:
            self.lower.discard(sequence.tokens[:length], key)

    def _copy(self, leader: Sequence, targets: list[tuple[Sequence, int]]) -> None:
        try:
            self._memory.share(leader.seat, [(sequence.seat, sequence.runs.span(length)) for sequence, length in targets])
        except MemoryFault as error:
            self._warn(f"a running prompt was not shared: {error}")
            for sequence, _ in targets:
                self._memory.drop(sequence.seat)
        else:
            for sequence, length in targets:
                self._credit(sequence, length)
                self._counters.cache_copies += 1

    def _credit(self, sequence: Sequence, length: int) -> None:
        sequence.n_done = length
        sequence.n_cached = min(length, sequence.n_prompt)
        self._counters.cache_hits += 1
        self._counters.cache_tokens += sequence.n_cached


def _whole_runs(runs: Runs, found: Found | None) -> Found | None:
    """What was found, without the beginning of a run; None where that cannot be cut off."""
    if found is None or (length := runs.clip(found.length)) == found.length:
        return found
    return None if found.checkpoint or not length else replace(found, length=length)
