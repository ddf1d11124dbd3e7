"""A radix tree over token ids: which stored prompt shares the longest prefix with a new one. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

V = TypeVar("V")


@dataclass(slots=True, eq=False)
class Node(Generic[V]):
    """An edge's tokens and what is below it. Every leaf but the root holds a value."""

    edge: tuple[int, ...] = ()
    parent: Node[V] | None = None
    children: dict[int, Node[V]] = field(default_factory=dict)
    value: V | None = None


@dataclass(frozen=True, slots=True)
class Match(Generic[V]):
    """A stored sequence and how much of it a lookup shares."""

    value: V
    length: int
    """Shared tokens."""
    whole: bool
    """Whether that is all of the stored sequence."""


class PrefixTree(Generic[V]):
    """Maps token sequences to values, one value a sequence."""

    def __init__(self) -> None:
        self._root: Node[V] = Node()

    @property
    def empty(self) -> bool:
        """Whether nothing is stored."""
        return not self._root.children and self._root.value is None

    def put(self, tokens: tuple[int, ...], value: V) -> V | None:
        """Store a value under a non-empty sequence; the value it replaces, if any."""
        node, depth = self._descend(tokens, split=True)
        if depth < len(tokens):
            child: Node[V] = Node(tokens[depth:], node)
            node.children[tokens[depth]] = child
            node = child
        old, node.value = node.value, value
        return old

    def remove(self, tokens: tuple[int, ...]) -> V | None:
        """Forget exactly this sequence; its value, or None when it was not stored."""
        node, depth = self._descend(tokens)
        if depth != len(tokens) or node.value is None or self._depth(node) != depth:
            return None
        old, node.value = node.value, None
        self._tidy(node)
        return old

    def longest(self, tokens: tuple[int, ...], *, whole: bool = False) -> Match[V] | None:
        """The stored sequence that shares the longest prefix with `tokens`.

        With `whole` only sequences all of which is a prefix of `tokens` count: memory that cannot be cut back can
        use no others.
        """
        node, depth = self._descend(tokens)
        if whole:
            end = self._depth(node)
            if end > depth:  # the walk ended inside this node's edge
                assert node.parent is not None
                node, end = node.parent, end - len(node.edge)
            while node.value is None:
                if node.parent is None:
                    return None
                end -= len(node.edge)
                node = node.parent
            return Match(node.value, end, True)
        if depth == 0:
            return None
        end = self._depth(node)
        while node.value is None:
            node = next(iter(node.children.values()))
            end += len(node.edge)
        return Match(node.value, depth, end == depth)

    def prefixes(self, tokens: tuple[int, ...]) -> list[V]:
        """Values of the stored sequences that are proper prefixes of `tokens`."""
        found = []
        node: Node[V] | None
        node, matched = self._descend(tokens)
        while node is not None:
            # the walk may have ended inside the last node's edge, which is then no prefix
            if node.value is not None and self._depth(node) <= matched and self._depth(node) < len(tokens):
                found.append(node.value)
            node = node.parent
        return found

    def __iter__(self) -> Iterator[V]:
        stack = [self._root]
        while stack:
            node = stack.pop()
            if node.value is not None:
                yield node.value
            stack.extend(node.children.values())

    def _descend(self, tokens: tuple[int, ...], *, split: bool = False) -> tuple[Node[V], int]:
        """Walk as far as `tokens` match. The node reached, and how many tokens matched: less than the node's depth
        when the walk ended inside its edge, unless `split`, which cuts that edge there."""
        node, depth = self._root, 0
        while depth < len(tokens):
            child = node.children.get(tokens[depth])
            if child is None:
                return node, depth
            shared = _shared(child.edge, tokens, depth)
            depth += shared
            if shared < len(child.edge):
                return (self._split(child, shared) if split else child), depth
            node = child
        return node, depth

    def _split(self, node: Node[V], at: int) -> Node[V]:
        parent = node.parent
        assert parent is not None
        middle: Node[V] = Node(node.edge[:at], parent, {node.edge[at]: node})
        parent.children[middle.edge[0]] = middle
        node.edge, node.parent = node.edge[at:], middle
        return middle

    def _tidy(self, node: Node[V]) -> None:
        """Drop a leaf without value, and join a node without value to its only child."""
        while node.parent is not None and node.value is None:
            parent = node.parent
            if not node.children:
                del parent.children[node.edge[0]]
                node = parent
            elif len(node.children) == 1:
                (child,) = node.children.values()
                child.edge, child.parent = node.edge + child.edge, parent
                parent.children[child.edge[0]] = child
                return
            else:
                return

    @staticmethod
    def _depth(node: Node[V]) -> int:
        depth = 0
        current: Node[V] | None = node
        while current is not None:
            depth += len(current.edge)
            current = current.parent
        return depth


def _shared(edge: tuple[int, ...], tokens: tuple[int, ...], start: int) -> int:
    """How many leading tokens of `edge` equal `tokens` from `start` on."""
    limit = min(len(edge), len(tokens) - start)
    if edge[:limit] == tokens[start : start + limit]:
        return limit
    for i in range(limit):
        if edge[i] != tokens[start + i]:
            return i
    return limit
