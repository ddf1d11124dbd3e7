"""Host memory: what is kept, what goes, and that the cap holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from puna.engine.tiers import ENTRY_OVERHEAD, Entry, HostTier
from puna.llama.state import State


def state(n_bytes: int = 1000) -> State:
    return np.zeros(n_bytes, np.uint8)


def kept(tier: HostTier) -> set[tuple[int, ...]]:
    return {entry.tokens for entry in tier._order}


def test_find_leaves_the_last_token_to_compute() -> None:
    tier = HostTier(10**6, can_cut=True)
    tier.put([1, 2, 3], state())
    match = tier.find([1, 2, 3])
    assert match is not None
    assert match.length == 2
    assert tier.find([1]) is None


def test_a_state_that_cannot_be_cut_serves_only_its_continuations() -> None:
    tier = HostTier(10**6, can_cut=False)
    tier.put([1, 2, 3], state())
    assert tier.find([1, 2, 3]) is None
    assert tier.find([1, 2, 4, 5]) is None
    match = tier.find([1, 2, 3, 4])
    assert match is not None
    assert (match.length, match.entry.tokens) == (3, (1, 2, 3))


def test_a_longer_conversation_replaces_its_beginning() -> None:
    tier = HostTier(10**6, can_cut=True)
    tier.put([1, 2], state())
    tier.put([1, 2, 3, 4], state())
    tier.put([9], state())
    assert kept(tier) == {(1, 2, 3, 4), (9,)}
    uncuttable = HostTier(10**6, can_cut=False)
    uncuttable.put([1, 2], state())
    uncuttable.put([1, 2, 3, 4], state())
    assert kept(uncuttable) == {(1, 2), (1, 2, 3, 4)}


def test_covers_means_nothing_new_to_store() -> None:
    tier = HostTier(10**6, can_cut=True)
    tier.put([1, 2, 3], state())
    assert tier.covers([1, 2])
    assert tier.covers([1, 2, 3])
    assert not tier.covers([1, 2, 3, 4])


def test_least_recently_used_goes_first() -> None:
    size = Entry(b"", (1, 1), state()).n_bytes
    tier = HostTier(3 * size, can_cut=True)
    for first in (1, 2, 3):
        tier.put([first, first], state())
    assert tier.covers([1, 1])
    tier.put([4, 4], state())
    assert kept(tier) == {(1, 1), (3, 3), (4, 4)}
    assert tier.n_evicted == 1


def test_what_never_fits_is_not_kept() -> None:
    tier = HostTier(100, can_cut=True)
    tier.put([1], state(101))
    assert len(tier) == 0
    assert tier.n_bytes == 0


def test_discarding_twice_is_harmless() -> None:
    tier = HostTier(10**6, can_cut=True)
    tier.put([1, 2], state())
    match = tier.find([1, 2, 3])
    assert match is not None
    tier.discard(match)
    tier.discard(match)
    assert len(tier) == tier.n_bytes == 0


@pytest.mark.parametrize("can_cut", [True, False])
@given(st.lists(st.tuples(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.integers(1, 3000)), max_size=40))
def test_the_cap_holds_and_the_books_are_right(can_cut: bool, puts: list[tuple[list[int], int]]) -> None:
    capacity = 5000 + ENTRY_OVERHEAD
    tier = HostTier(capacity, can_cut=can_cut)
    for tokens, n_bytes in puts:
        tier.put(tokens, state(n_bytes))
        assert tier.n_bytes <= capacity
        assert tier.n_bytes == sum(entry.n_bytes for entry in tier._order)
        assert {entry.tokens for tree in tier._trees.values() for entry in tree} == kept(tier)


@given(st.lists(st.tuples(st.sampled_from([b"", b"a", b"b"]), st.lists(st.integers(0, 2), min_size=1, max_size=5)), max_size=30))
def test_keys_do_not_see_each_other(puts: list[tuple[bytes, list[int]]]) -> None:
    tier = HostTier(10**6, can_cut=True)
    for key, tokens in puts:
        tier.put(tokens, state(), key)
    for key in (b"", b"a", b"b", b"c"):
        own = HostTier(10**6, can_cut=True)
        for other, tokens in puts:
            if other == key:
                own.put(tokens, state())
        for _, tokens in puts:
            found, expected = tier.find([*tokens, 9], key), own.find([*tokens, 9])
            assert (found.length if found else 0) == (expected.length if expected else 0)
            assert tier.covers(tokens, key) == own.covers(tokens)


def test_what_falls_out_is_announced_with_its_key() -> None:
    seen: list[tuple[bytes, tuple[int, ...], int]] = []
    size = Entry(b"k", (1, 1), state()).n_bytes
    tier = HostTier(size, can_cut=True, on_evict=lambda key, tokens, state: seen.append((key, tokens, state.nbytes)))
    tier.put([1, 1], state(), b"k")
    tier.put([2, 2], state(), b"k")
    tier.put([2, 2, 3], state(900), b"k")
    assert seen == [(b"k", (1, 1), 1000)]
