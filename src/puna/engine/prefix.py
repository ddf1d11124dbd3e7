"""A radix tree over token ids: which stored sequence shares the longest prefix with a new one. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

V = TypeVar("V")


@dataclass(slots=True, eq=False)
class Node(Generic[V]):
    """A range of tokens that follows its parent's, and what is kept for it."""

    edge: array[int]
    start: int
    """Tokens before this node's."""
    value: V
    parent: Node[V] | None = None
    children: dict[int, Node[V]] = field(default_factory=dict)
    """By the first token of their ranges."""

    @property
    def end(self) -> int:
        """Tokens up to this node's last."""
        return self.start + len(self.edge)

    def path(self) -> list[Node[V]]:
        """The nodes from the first range to this one."""
        path: list[Node[V]] = []
        node: Node[V] | None = self
        while node is not None and node.parent is not None:
            path.append(node)
            node = node.parent
        return path[::-1]

    def tokens(self) -> tuple[int, ...]:
        """All tokens from the first to this node's last."""
        return tuple(token for node in self.path() for token in node.edge)


class PrefixTree(Generic[V]):
    """Token sequences, each a path of nodes; what two have in common is one path."""

    def __init__(self, make: Callable[[], V], split: Callable[[V, int], tuple[V, V]]) -> None:
        """`make` gives a new node's value; `split` parts that of a node whose range is cut after so many tokens."""
        self._make = make
        self._split_value = split
        self._root: Node[V] = Node(array("i"), 0, make())

    @property
    def empty(self) -> bool:
        """Whether nothing is stored."""
        return not self._root.children

    def __iter__(self) -> Iterator[Node[V]]:
        stack = list(self._root.children.values())
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.children.values())

    def walk(self, tokens: array[int]) -> tuple[Node[V], int]:
        """Go as far as `tokens` match. The node reached, and how many tokens matched: less than its end when the walk
        ended inside its range. The root, which has no range, when nothing does."""
        node, matched = self._root, 0
        while matched < len(tokens):
            child = node.children.get(tokens[matched])
            if child is None:
                break
            shared = common_prefix(child.edge, tokens[matched : matched + len(child.edge)])
            node, matched = child, matched + shared
            if shared < len(child.edge):
                break
        return node, matched

    def put(self, tokens: array[int]) -> Node[V]:
        """The node that ends with the last of `tokens`, of which there is at least one. It, and one where its path leaves
        the others', are made if need be."""
        node, matched = self.walk(tokens)
        if matched < node.end:
            node = self._split(node, matched - node.start)
        if matched < len(tokens):
            child: Node[V] = Node(tokens[matched:], matched, self._make(), node)
            node.children[tokens[matched]] = child
            node = child
        return node

    def remove(self, leaf: Node[V]) -> Node[V] | None:
        """Take out a node without children. Its parent, unless that is the root."""
        assert not leaf.children and leaf.parent is not None
        parent = leaf.parent
        del parent.children[leaf.edge[0]]
        leaf.parent = None
        return parent if parent.parent is not None else None

    def _split(self, node: Node[V], at: int) -> Node[V]:
        """Cut a node's range after `at` tokens; the new node with the first of them."""
        parent = node.parent
        assert parent is not None
        first, second = self._split_value(node.value, at)
        middle: Node[V] = Node(node.edge[:at], node.start, first, parent, {node.edge[at]: node})
        parent.children[middle.edge[0]] = middle
        node.edge, node.start, node.value, node.parent = node.edge[at:], middle.end, second, middle
        return middle


def token_array(tokens: Iterable[int]) -> array[int]:
    """Tokens as the tree takes them: 4 bytes each, in slices that compare fast."""
    return array("i", tokens)


def common_prefix(a: array[int], b: array[int]) -> int:
    """How many leading tokens both have. Compares slices, which is much faster than token by token."""
    low, high = 0, min(len(a), len(b))
    if a[:high] == b[:high]:
        return high
    while high - low > 1:  # a[:low] equals b[:low], a[:high] does not equal b[:high]
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low
