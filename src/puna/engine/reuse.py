"""Not reading again what was read before: prefixes from running sequences, from leaders, from host memory."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable

from puna.engine.checkpoints import choose_checkpoints
from puna.engine.memory import Memory, MemoryFault
from puna.engine.scheduler import Scheduler
from puna.engine.sequence import Sequence
from puna.engine.stats import Counters
from puna.engine.tiers import Found, HostTier, LowerTier
from puna.llama.context import DecodeError
from puna.llama.state import StateFormatError

LOWER_GAIN = 64
"""Tokens of reading that a lookup in the tier below host memory must spare to be worth its time."""


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
        self._scheduler = scheduler
        self._memory = memory
        self._host = host
        self._counters = counters
        self._warn = warn
        self._can_cut = can_cut

    def find(self, sequence: Sequence) -> None:
        """Give a sequence in an empty seat the longest known prefix, or a leader to wait for.

        Nothing to one that wants to see its whole prompt computed, or computed in its own way.
        """
        wanted = sequence.generation
        if not wanted.cache_prompt or wanted.prompt_probs or wanted.deterministic or sequence.n_dropped:
            return
        stored = self._find_stored(sequence)
        n_stored = stored.length if stored else 0
        leader, n_shared = self._scheduler.best_running(sequence)
        n_now = min(n_shared, leader.n_done) if leader else 0
        if leader and self._scheduler.should_wait(leader, n_shared, max(n_stored, n_now)):
            sequence.leader, sequence.leader_goal = leader, n_shared
            if not self._can_cut and n_shared not in leader.checkpoints:
                insort(leader.checkpoints, n_shared)  # what two have in common others may have too
        elif leader and n_now and n_now >= n_stored:
            self._copy(leader, [(sequence, n_now)])
        elif stored:
            self._wake(sequence, stored)
        if not self._can_cut and self._host.capacity:
            self._plan_checkpoints(sequence)

    def _plan_checkpoints(self, sequence: Sequence) -> None:
        n_shared = max(
            self._host.shared(sequence.tokens, sequence.key_at(sequence.n_prompt - 1)), self._scheduler.most_shared(sequence)
        )
        n_known = max(sequence.n_done, sequence.leader_goal)
        sequence.checkpoints = choose_checkpoints(sequence.n_prompt, n_known=n_known, n_shared=n_shared)

    def checkpoint(self, sequence: Sequence) -> None:
        """Keep a sequence's state if it has just reached a point where that is wanted."""
        reached = [length for length in sequence.checkpoints if length <= sequence.n_done]
        del sequence.checkpoints[: len(reached)]
        if reached and reached[-1] == sequence.n_done:
            self.keep(sequence)
            self._counters.checkpoints += 1

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

    def keep(self, sequence: Sequence) -> None:
        """Put what a sequence has in memory to rest, unless that is stored already or not wanted."""
        tokens = sequence.tokens[: sequence.n_done]
        if (
            not tokens
            or sequence.n_dropped
            or not sequence.generation.cache_prompt
            or self._host.capacity == 0
            or self._host.covers(tokens, sequence.key_at(len(tokens)))
        ):
            return
        held = self._memory.length(sequence.seat)
        if held != len(tokens):
            self._warn(f"a sequence of {len(tokens)} tokens holds {held} in memory; it is not kept")
            return
        try:
            self._host.put(tokens, self._memory.rest(sequence.seat), sequence.key_at(len(tokens)))
        except (DecodeError, StateFormatError) as error:
            self._warn(f"a prompt could not be kept: {error}")

    def _find_stored(self, sequence: Sequence) -> Found | None:
        """The longest prefix in host memory, after fetching a longer one from below if there is one.

        Where other adapters apply to the prompt's end than to its beginning, that beginning is looked for by itself.
        """
        found: Found | None = None
        for phase in (*sequence.phases[1:], None):
            tokens = sequence.tokens if phase is None else sequence.tokens[: phase.start + 1]
            stored = self._find_in(tokens, sequence.key_at(len(tokens) - 1))
            if stored is not None and (found is None or stored.length > found.length):
                found = stored
        return found

    def _find_in(self, tokens: list[int], key: bytes) -> Found | None:
        """The longest prefix of all but the last token under one key."""
        stored = self._host.find(tokens, key)
        if self.lower is None or self._host.capacity == 0:
            return stored
        n_stored = stored.length if stored else 0
        if self.lower.find(tokens[:-1], key) < n_stored + LOWER_GAIN:
            return stored
        loaded = self.lower.load(tokens[:-1], key)
        if loaded is None:
            return stored
        try:
            self._host.put(*loaded, key)
        except StateFormatError as error:
            self._warn(f"a prompt from below host memory was not used: {error}")
        return self._host.find(tokens, key)

    def _wake(self, sequence: Sequence, found: Found) -> None:
        try:
            self._memory.wake(sequence.seat, self._host.load(found), found.length)
        except (MemoryFault, StateFormatError) as error:
            self._warn(f"a stored prompt was not used: {error}")
            self._host.discard(found)
        else:
            self._credit(sequence, found.length)

    def _copy(self, leader: Sequence, targets: list[tuple[Sequence, int]]) -> None:
        try:
            self._memory.share(leader.seat, [(sequence.seat, length) for sequence, length in targets])
        except MemoryFault as error:
            self._warn(f"a running prompt was not shared: {error}")
            for sequence, _ in targets:
                self._memory.drop(sequence.seat)
        else:
            for sequence, length in targets:
                self._credit(sequence, length)

    def _credit(self, sequence: Sequence, length: int) -> None:
        sequence.n_done = length
        sequence.n_cached = min(length, sequence.n_prompt)
        self._counters.cache_hits += 1
        self._counters.cache_tokens += sequence.n_cached
