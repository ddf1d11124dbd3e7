"""Host memory, where prompts rest while nobody runs them."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from puna.engine.prefix import Match, PrefixTree
from puna.llama.state import State

ENTRY_OVERHEAD = 200
"""Rough bytes of bookkeeping an entry costs beside its state, not counting 8 bytes a token."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A sequence's whole state, and the tokens it is the state of."""

    tokens: tuple[int, ...]
    state: State

    @property
    def n_bytes(self) -> int:
        return self.state.nbytes + 8 * len(self.tokens) + ENTRY_OVERHEAD


class HostTier:
    """States in host memory under a hard cap, least recently used first out.

    Where a state can be cut back (`can_cut`), one that is a prefix of another is redundant and dropped.
    """

    def __init__(self, capacity: int, *, can_cut: bool) -> None:
        self.capacity = capacity
        self._can_cut = can_cut
        self._tree: PrefixTree[Entry] = PrefixTree()
        self._order: OrderedDict[Entry, None] = OrderedDict()
        self.n_bytes = 0
        self.n_evicted = 0

    def __len__(self) -> int:
        return len(self._order)

    def find(self, tokens: list[int]) -> Match[Entry] | None:
        """The entry that spares the most reading of a prompt. At least its last token must be computed afresh."""
        return self._tree.longest(tuple(tokens[:-1]), whole=not self._can_cut)

    def touch(self, entry: Entry) -> None:
        """Mark as just used."""
        self._order.move_to_end(entry)

    def covers(self, tokens: list[int]) -> bool:
        """Whether what `tokens` would store is here already; marks it as used."""
        match = self._tree.longest(tuple(tokens), whole=not self._can_cut)
        if match is None or match.length < len(tokens):
            return False
        self.touch(match.value)
        return True

    def put(self, tokens: list[int], state: State) -> None:
        """Keep a state if it fits at all."""
        entry = Entry(tuple(tokens), state)
        if entry.n_bytes > self.capacity:
            return
        if self._can_cut:
            for shorter in self._tree.prefixes(entry.tokens):
                self._forget(shorter)
        replaced = self._tree.put(entry.tokens, entry)
        if replaced is not None:
            self._discount(replaced)
        self._order[entry] = None
        self.n_bytes += entry.n_bytes
        while self.n_bytes > self.capacity:
            self._forget(next(iter(self._order)))
            self.n_evicted += 1

    def discard(self, entry: Entry) -> None:
        """Drop an entry that turned out to be unusable."""
        if entry in self._order:
            self._forget(entry)

    def _forget(self, entry: Entry) -> None:
        self._tree.remove(entry.tokens)
        self._discount(entry)

    def _discount(self, entry: Entry) -> None:
        del self._order[entry]
        self.n_bytes -= entry.n_bytes
