"""The radix tree against a plain dictionary."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from puna.engine.prefix import PrefixTree

Tokens = tuple[int, ...]
sequences = st.lists(st.integers(0, 2), min_size=1, max_size=8).map(tuple)


def shared(a: Tokens, b: Tokens) -> int:
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


def filled(stored: list[Tokens]) -> PrefixTree[Tokens]:
    tree: PrefixTree[Tokens] = PrefixTree()
    for tokens in stored:
        tree.put(tokens, tokens)
    return tree


@given(st.lists(sequences, max_size=12), st.lists(sequences, max_size=6), sequences)
def test_longest_shared_prefix_is_found(stored: list[Tokens], removed: list[Tokens], wanted: Tokens) -> None:
    tree = filled(stored)
    model = set(stored)
    for tokens in removed:
        assert tree.remove(tokens) == (tokens if tokens in model else None)
        model.discard(tokens)
    assert set(tree) == model

    best = max((shared(tokens, wanted) for tokens in model), default=0)
    match = tree.longest(wanted)
    assert (match.length if match else 0) == best
    if match:
        assert match.value in model
        assert shared(match.value, wanted) == best
        assert match.whole == (len(match.value) == best)


@given(st.lists(sequences, max_size=12), sequences)
def test_whole_sequences_only(stored: list[Tokens], wanted: Tokens) -> None:
    match = filled(stored).longest(wanted, whole=True)
    fitting = [tokens for tokens in stored if wanted[: len(tokens)] == tokens]
    assert (match.value if match else None) == max(fitting, key=len, default=None)
    if match:
        assert match.length == len(match.value)
        assert match.whole


@given(st.lists(sequences, max_size=12), sequences)
def test_proper_prefixes(stored: list[Tokens], wanted: Tokens) -> None:
    found = filled(stored).prefixes(wanted)
    assert set(found) == {tokens for tokens in stored if len(tokens) < len(wanted) and wanted[: len(tokens)] == tokens}
    assert len(found) == len(set(found))


def test_replacing_returns_the_old_value() -> None:
    tree: PrefixTree[str] = PrefixTree()
    assert tree.put((1, 2), "old") is None
    assert tree.put((1, 2), "new") == "old"
    assert list(tree) == ["new"]
