"""Host memory, where prompts rest while nobody runs them, and what may lie below it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from puna.engine.prefix import Node, PrefixTree, token_array
from puna.llama.state import (
    OtherPositions,
    Rows,
    State,
    StateFormatError,
    StateShape,
    count_streams,
    cut,
    put_together,
    take_apart,
)

NODE_OVERHEAD = 700
"""Bytes of bookkeeping that a node costs beside its rows, its tail and its tokens; a bit more than was measured."""

TOKEN_BYTES = 4

OnEvict = Callable[[bytes, tuple[int, ...], State], None]
"""Called with key, tokens and whole state of what is about to fall out of host memory."""


Stored = tuple[tuple[int, ...], State]
"""Tokens and their whole state."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a lower tier can bring for a prompt."""

    length: int
    """How many of its first tokens need not be read then."""
    seconds: float
    """How long that takes, as far as can be told."""


class LowerTier(Protocol):
    """A slower and larger place below host memory. Nothing here raises for what is wrong with a place or with a file."""

    def find(self, tokens: Sequence[int], key: bytes) -> Offer | None:
        """What it can bring for a prompt. Cheap: touches no file."""

    def fetch(self, tokens: Sequence[int], key: bytes) -> Future[Stored | None]:
        """Bring what `find` found, on another thread; None when it turns out to be unusable."""

    def forget(self, tokens: Sequence[int], key: bytes) -> None:
        """Drop a prompt and what is stored of its beginnings."""

    def discard(self, tokens: Sequence[int], key: bytes) -> None:
        """Drop what `find` finds for these tokens: it turned out to be unusable."""


@dataclass(slots=True, eq=False)
class Held:
    """What is kept for a node's range of tokens."""

    key: bytes
    rows: State | None = None
    """The cells of the range, where they are understood."""
    tail: State | None = None
    """What belongs to the end of the range and cannot be cut: a checkpoint."""
    whole: bool = False
    """Whether the tail is a whole state, because its bytes are not understood."""
    announced: bool = False
    """Whether a state that begins with all of this was announced as falling out."""

    @property
    def n_bytes(self) -> int:
        return sum(part.nbytes for part in (self.rows, self.tail) if part is not None)


HeldNode = Node[Held]

EMPTY: State = np.zeros(0, np.uint8)


@dataclass(frozen=True, slots=True)
class Found:
    """A stored prefix of a prompt. Only good until the tier changes."""

    length: int
    """Tokens it shares with the prompt."""
    node: HeldNode
    """Where its last token is."""
    checkpoint: bool
    """Whether it is all that was stored with the node's tail, instead of rows that were cut."""

    @property
    def key(self) -> bytes:
        """The namespace that it lies in."""
        return self.node.value.key


class HostTier:
    """States in host memory under a hard cap, least recently used ends first out.

    What sequences have in common is stored once: a tree's nodes hold the cells of their own range of tokens. Models whose
    memory cannot be cut (`can_cut`) have checkpoints beside the cells, and use nothing without one.

    Entries live in namespaces: what was computed under one `key` (a set of adapters, media in the prompt) is never found
    under another one.
    """

    def __init__(self, capacity: int, *, can_cut: bool, shape: StateShape | None, on_evict: OnEvict | None = None) -> None:
        """`capacity` in bytes, 0 to keep nothing. `shape` is None for states whose bytes are not understood."""
        self.capacity = capacity
        self.on_evict = on_evict
        self._can_cut = can_cut
        self._shape = shape
        self._trees: dict[bytes, PrefixTree[Held]] = {}
        self._order: OrderedDict[HeldNode, None] = OrderedDict()
        """What can fall out, by last use. A node follows all that lies below it, so the first has nothing below it; among
        checkpoints, which can fall out one by one, there is no such rule."""
        self._n_stream = 1
        """Of the context that states come from: what has its number of streams can be woken there as it is."""
        self.n_bytes = 0
        self.n_evicted = 0

    def __len__(self) -> int:
        return len(self._order)

    @property
    def idle(self) -> bool:
        """Whether nothing is kept, here or below."""
        return self.capacity == 0 and self.on_evict is None

    # looking up

    def find(self, tokens: Sequence[int], key: bytes = b"") -> Found | None:
        """What spares the most reading of a prompt. At least its last token must be computed afresh."""
        return self._best(tokens[:-1], key)

    def shared(self, tokens: Sequence[int], key: bytes = b"") -> int:
        """How many of the first tokens are those of something stored, whether it can be used there or not."""
        tree = self._trees.get(key)
        return tree.walk(token_array(tokens))[1] if tree else 0

    def load(self, found: Found) -> State:
        """The state of what was found, as long as it says; marks it as just used."""
        self._touch(found.node)
        return self._state(found.node, found.length)

    def covers(self, tokens: Sequence[int], key: bytes = b"") -> bool:
        """Whether what `tokens` would store is here already; marks it as used."""
        found = self._best(tokens, key)
        if found is None or found.length < len(tokens):
            return False
        self._touch(found.node)
        return True

    def alike(self, tokens: Sequence[int], key: bytes, most: int) -> Iterator[Found]:
        """Stored sequences, whole, that share the longest beginning with `tokens`: the most recently used first, and `most` of
        them at most. None where memory cannot be cut."""
        tree = self._trees.get(key)
        if tree is None or not (self._can_cut and self._has_rows):
            return
        branch, _ = tree.walk(token_array(tokens))
        for node in reversed(self._order):
            if most and node.value.key == key and not node.children and (branch.parent is None or branch in node.path()):
                most -= 1
                yield Found(node.end, node, checkpoint=False)

    def _best(self, tokens: Sequence[int], key: bytes) -> Found | None:
        tree = self._trees.get(key)
        if tree is None:
            return None
        node, matched = tree.walk(token_array(tokens))
        best: Found | None = None
        connected = True
        for step in node.path():
            connected = connected and (step.value.rows is not None or not self._has_rows)
            if step.value.tail is not None and step.end <= matched and (connected or step.value.whole):
                best = Found(step.end, step, checkpoint=True)
            elif connected and self._can_cut and self._has_rows:
                best = Found(min(step.end, matched), step, checkpoint=False)
        return best

    @property
    def _has_rows(self) -> bool:
        return self._shape is not None and self._shape.cell > 0

    def _state(self, node: HeldNode, length: int) -> State:
        held = node.value
        if held.whole and held.tail is not None:
            return held.tail
        assert self._shape is not None
        pieces = [step.value.rows for step in node.path() if step.value.rows is not None]
        tail = held.tail if held.tail is not None else EMPTY
        return put_together(pieces, length, tail, self._shape, n_stream=self._n_stream)

    # keeping

    def put(self, tokens: Sequence[int], state: State, key: bytes = b"") -> None:
        """Keep the whole state of a sequence of at least one token; one that does not fit at all falls out at once.

        Raises `StateFormatError` for a state of another shape or number of cells.
        """
        rows, tail, whole = self._take_apart(state, len(tokens))
        tree = self._trees.get(key) or PrefixTree(lambda: Held(key), self._split)
        wanted = token_array(tokens)
        node, matched = tree.walk(wanted)
        if self._least_bytes(node, matched, rows, tail, len(wanted)) > self.capacity:
            if self.on_evict is not None:
                self.on_evict(key, tuple(tokens), state)
            return
        self._trees[key] = tree
        node = tree.put(wanted)
        if matched < len(wanted):
            self.n_bytes += NODE_OVERHEAD + TOKEN_BYTES * len(node.edge)
        for step in node.path():
            if rows is not None and step.value.rows is None:
                step.value.rows = cut(rows, step.start, step.end)
                self.n_bytes += step.value.rows.nbytes
        if tail is not None:
            self.n_bytes += tail.nbytes - (node.value.tail.nbytes if node.value.tail is not None else 0)
            node.value.tail, node.value.whole = tail, whole
        self._touch(node)
        while self.n_bytes > self.capacity and self._order:
            self._evict(next(node for node in self._order if not (self._has_rows and self._can_cut and node.children)))

    def forget(self, tokens: Sequence[int], key: bytes = b"") -> None:
        """Drop a prompt and what is stored of its beginnings; what others have in common with it stays with them."""
        tree = self._trees.get(key)
        node, matched = tree.walk(token_array(tokens)) if tree else (None, 0)
        path = node.path() if node is not None and node.end == matched == len(tokens) else []
        for step in reversed(path):
            if step.children:
                break
            if step.parent is not None:  # it may have gone with the one below it
                self._drop(step)

    def entries(
        self, known: Callable[[bytes, tuple[int, ...]], bool] | None = None
    ) -> Iterator[tuple[bytes, tuple[int, ...], State]]:
        """Key, tokens and whole state of everything that rests, the most recently used first, without what is `known`
        elsewhere. Not to be changed meanwhile."""
        for node in reversed(self._order):
            if not (self._has_rows and self._can_cut and node.children):
                key, tokens = node.value.key, node.tokens()
                if known is None or not known(key, tokens):
                    yield key, tokens, self._state(node, node.end)

    def discard(self, found: Found) -> None:
        """Drop what turned out to be unusable, and all that may have it in common."""
        if found.node.parent is None:
            return
        first = found.node if found.node.value.whole else found.node.path()[0]
        below = [first]
        for node in below:
            below += node.children.values()
        for node in reversed(below):
            if node.parent is not None:  # it may have gone with one below it
                self._drop(node)

    def _take_apart(self, state: State, n_tokens: int) -> tuple[Rows | None, State | None, bool]:
        """Rows, a tail of its own, and whether that is the whole state."""
        if self._shape is None:
            return None, state, True
        try:
            rows, tail = take_apart(state, self._shape)
        except OtherPositions:
            return None, state, True
        self._n_stream = count_streams(state, self._shape)
        if rows is not None and rows.count != n_tokens:
            raise StateFormatError(f"a state of {rows.count} cells for {n_tokens} tokens")
        return rows, tail.copy() if len(tail) else None, False

    def _least_bytes(self, node: HeldNode, matched: int, rows: Rows | None, tail: State | None, n_tokens: int) -> int:
        """What a sequence takes, alone, when it shares the first `matched` tokens with the path to `node`."""
        size = (NODE_OVERHEAD + TOKEN_BYTES) * len(node.path()) + NODE_OVERHEAD + TOKEN_BYTES * n_tokens
        if rows is not None:
            size += sum(step.value.rows.nbytes for step in node.path() if step.value.rows is not None)
            size += rows.n_bytes * (n_tokens - matched) // n_tokens
        return size + (tail.nbytes if tail is not None else 0)

    def _split(self, held: Held, at: int) -> tuple[Held, Held]:
        first = Held(held.key, announced=held.announced)
        self.n_bytes += NODE_OVERHEAD
        if held.rows is not None:
            assert self._shape is not None
            self.n_bytes -= held.rows.nbytes
            rows = Rows(held.rows, self._shape)
            first.rows, held.rows = cut(rows, 0, at), cut(rows, at, rows.count)
            self.n_bytes += first.rows.nbytes + held.rows.nbytes
        return first, held

    def _touch(self, node: HeldNode) -> None:
        for step in reversed(node.path()):
            if (step is node and step.value.tail is not None) or (self._can_cut and step.value.rows is not None):
                self._order[step] = None
                self._order.move_to_end(step)
                step.value.announced = False

    def _evict(self, node: HeldNode) -> None:
        held = node.value
        if self.on_evict is not None and not held.announced:
            self.on_evict(held.key, node.tokens(), self._state(node, node.end))
            for step in node.path() if self._can_cut else ():
                step.value.announced = True
        self._drop(node)
        self.n_evicted += 1

    def _drop(self, node: HeldNode) -> None:
        """Forget a node's checkpoint, and every node that is of no use without it."""
        tree = self._trees[node.value.key]
        self._order.pop(node, None)
        if node.value.tail is not None:
            self.n_bytes -= node.value.tail.nbytes
            node.value.tail = None
        useless: HeldNode | None = node
        while useless is not None and not useless.children and useless not in self._order:
            self.n_bytes -= useless.value.n_bytes + NODE_OVERHEAD + TOKEN_BYTES * len(useless.edge)
            useless = tree.remove(useless)
        if tree.empty:
            del self._trees[node.value.key]
