"""Host memory, where prompts rest while nobody runs them, and what may lie below it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from puna.engine.prefix import PrefixTree
from puna.llama.state import State

ENTRY_OVERHEAD = 200
"""Rough bytes of bookkeeping an entry costs beside its state, not counting 8 bytes a token."""

OnEvict = Callable[[bytes, tuple[int, ...], State], None]
"""Called with key, tokens and whole state of what is about to fall out of host memory."""


class LowerTier(Protocol):
    """A slower and larger place below host memory. Nothing here raises for what is wrong with a place or with a file."""

    def find(self, tokens: Sequence[int], key: bytes) -> int:
        """How many of the first `tokens` need not be read if `load` is called; 0 for none. Cheap: touches no file."""

    def load(self, tokens: Sequence[int], key: bytes) -> tuple[tuple[int, ...], State] | None:
        """What `find` found: the tokens that were stored, and their whole state. None when it turned out to be unusable."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A sequence's whole state, the tokens it is the state of, and the namespace it belongs to."""

    key: bytes
    tokens: tuple[int, ...]
    state: State

    @property
    def n_bytes(self) -> int:
        return self.state.nbytes + 8 * len(self.tokens) + len(self.key) + ENTRY_OVERHEAD


@dataclass(frozen=True, slots=True)
class Found:
    """A stored prefix of a prompt."""

    length: int
    """Tokens it shares with the prompt."""
    entry: Entry


class HostTier:
    """States in host memory under a hard cap, least recently used first out.

    Entries live in namespaces: what was computed under one `key` (a set of adapters, media in the prompt) is never found
    under another one. Where a state can be cut back (`can_cut`), one that is a prefix of another is redundant and dropped.
    """

    def __init__(self, capacity: int, *, can_cut: bool, on_evict: OnEvict | None = None) -> None:
        """`capacity` in bytes, 0 to keep nothing."""
        self.capacity = capacity
        self.on_evict = on_evict
        self._can_cut = can_cut
        self._trees: dict[bytes, PrefixTree[Entry]] = {}
        self._order: OrderedDict[Entry, None] = OrderedDict()
        self.n_bytes = 0
        self.n_evicted = 0

    def __len__(self) -> int:
        return len(self._order)

    def find(self, tokens: Sequence[int], key: bytes = b"") -> Found | None:
        """What spares the most reading of a prompt. At least its last token must be computed afresh."""
        tree = self._trees.get(key)
        match = tree.longest(tuple(tokens[:-1]), whole=not self._can_cut) if tree else None
        return Found(match.length, match.value) if match else None

    def load(self, found: Found) -> State:
        """The state of what was found, to be cut back to its length; marks it as just used."""
        if found.entry in self._order:
            self._order.move_to_end(found.entry)
        return found.entry.state

    def covers(self, tokens: Sequence[int], key: bytes = b"") -> bool:
        """Whether what `tokens` would store is here already; marks it as used."""
        tree = self._trees.get(key)
        match = tree.longest(tuple(tokens), whole=not self._can_cut) if tree else None
        if match is None or match.length < len(tokens):
            return False
        self._order.move_to_end(match.value)
        return True

    def put(self, tokens: Sequence[int], state: State, key: bytes = b"") -> None:
        """Keep a state if it fits at all."""
        entry = Entry(key, tuple(tokens), state)
        if entry.n_bytes > self.capacity:
            return
        tree = self._trees.setdefault(key, PrefixTree())
        if self._can_cut:
            for shorter in tree.prefixes(entry.tokens):
                self._forget(shorter)
            tree = self._trees.setdefault(key, tree)
        replaced = tree.put(entry.tokens, entry)
        if replaced is not None:
            self._discount(replaced)
        self._order[entry] = None
        self.n_bytes += entry.n_bytes
        while self.n_bytes > self.capacity:
            self._evict(next(iter(self._order)))

    def discard(self, found: Found) -> None:
        """Drop what turned out to be unusable."""
        if found.entry in self._order:
            self._forget(found.entry)

    def _evict(self, entry: Entry) -> None:
        if self.on_evict is not None:
            self.on_evict(entry.key, entry.tokens, entry.state)
        self._forget(entry)
        self.n_evicted += 1

    def _forget(self, entry: Entry) -> None:
        tree = self._trees[entry.key]
        tree.remove(entry.tokens)
        if tree.empty:
            del self._trees[entry.key]
        self._discount(entry)

    def _discount(self, entry: Entry) -> None:
        del self._order[entry]
        self.n_bytes -= entry.n_bytes
