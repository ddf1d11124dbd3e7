"""The radix tree against a dictionary of ranges."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from puna.engine.prefix import Node, PrefixTree, common_prefix, token_array

Tokens = tuple[int, ...]
sequences = st.lists(st.integers(0, 2), min_size=1, max_size=7).map(tuple)


def make_tree(stored: list[Tokens]) -> PrefixTree[Tokens]:
    """A tree whose nodes hold their own range as their value."""
    tree: PrefixTree[Tokens] = PrefixTree(tuple, lambda value, at: (value[:at], value[at:]))
    for tokens in stored:
        node = tree.put(token_array(tokens))
        assert node.tokens() == tokens
        node.value = tuple(node.edge)
    return tree


def check(tree: PrefixTree[Tokens]) -> None:
    for node in tree:
        assert node.edge and node.value == tuple(node.edge)
        assert node.parent is not None and node.parent.children[node.edge[0]] is node
        assert node.start == node.parent.end
        assert [step.end for step in node.path()][-1] == node.end == len(node.tokens())


@given(st.lists(sequences, max_size=12), sequences)
def test_what_is_shared_is_one_path(stored: list[Tokens], wanted: Tokens) -> None:
    tree = make_tree(stored)
    check(tree)
    prefixes = {tokens[:n] for tokens in stored for n in range(1, len(tokens) + 1)}
    assert sum(len(node.edge) for node in tree) == len(prefixes), "every prefix is there once"
    node, matched = tree.walk(token_array(wanted))
    assert matched == max((n for n in range(len(wanted) + 1) if wanted[:n] in prefixes), default=0)
    assert node.start <= matched <= node.end or not matched
    assert node.tokens()[:matched] == wanted[:matched]


@given(st.lists(sequences, min_size=1, max_size=12))
def test_leaves_come_off_one_by_one(stored: list[Tokens]) -> None:
    tree = make_tree(stored)
    while not tree.empty:
        leaves = [node for node in tree if not node.children]
        leaf = sorted(leaves, key=Node.tokens)[len(leaves) // 2]
        parent = leaf.parent
        assert tree.remove(leaf) is (parent if parent and parent.parent else None)
        assert leaf.parent is None and leaf.path() == []
        check(tree)
    assert list(tree) == []


@given(sequences, sequences)
def test_common_prefix(a: Tokens, b: Tokens) -> None:
    n = common_prefix(token_array(a), token_array(b))
    assert a[:n] == b[:n]
    assert n in (len(a), len(b)) or a[n] != b[n]
