"""Host memory: what is kept, what goes, and that the cap holds."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from puna.engine.tiers import NODE_OVERHEAD, HostTier
from puna.llama.state import State, StateFormatError, StateShape
from tests.unit.engine.states import make_shape, make_state

Tokens = tuple[int, ...]
SHAPE = make_shape()
TAILED = make_shape(tail=b"....")
CELL = 12 + 2 * (8 + 12)
"""Bytes of a cell."""


def tail_of(tokens: Sequence[int]) -> bytes:
    """What only the state of exactly these tokens has behind its cells."""
    return f"[{','.join(map(str, tokens))}]".encode()


class Rig:
    """A tier whose states know what they are the states of."""

    def __init__(self, kind: str, capacity: int = 10**6) -> None:
        self.kind = kind
        self.fallen: list[tuple[bytes, Tokens]] = []
        shape = {"plain": SHAPE, "window": TAILED, "recurrent": StateShape(b"magic---", 0, 0, 0, True), "unknown": None}[kind]
        self.tier = HostTier(capacity, can_cut=kind == "plain", shape=shape, on_evict=self.announce)

    def announce(self, key: bytes, tokens: Tokens, state: State) -> None:
        np.testing.assert_array_equal(state, self.state(tokens))
        self.fallen.append((key, tokens))

    def state(self, tokens: Tokens) -> State:
        if self.kind == "plain":
            return make_state(tokens)
        if self.kind == "recurrent":
            return np.frombuffer(b"magic---" + tail_of(tokens), np.uint8)
        return make_state(tokens, tail=tail_of(tokens))

    def put(self, *tokens: int, key: bytes = b"") -> None:
        self.tier.put(tokens, self.state(tokens), key)

    def found(self, *tokens: int, key: bytes = b"") -> int:
        """How many tokens are found; what is loaded must be their state."""
        found = self.tier.find(tokens, key)
        if found is None:
            return 0
        np.testing.assert_array_equal(self.tier.load(found), self.state(tokens[: found.length]))
        return found.length

    def check(self) -> None:
        """The books are right."""
        tier = self.tier
        assert tier.n_bytes <= tier.capacity
        nodes = [node for tree in tier._trees.values() for node in tree]
        assert tier.n_bytes == sum(node.value.n_bytes + NODE_OVERHEAD + 4 * len(node.edge) for node in nodes)
        assert {node for node in nodes if node.value.tail is not None or self.kind == "plain"} == set(tier._order)
        assert all(node.children or node in tier._order for node in nodes), "nothing is of no use"
        for node in nodes:
            assert (node.value.rows is not None) == (self.kind in ("plain", "window"))
        if self.kind == "plain":
            order = {node: i for i, node in enumerate(tier._order)}
            assert all(node.parent not in order or order[node] < order[node.parent] for node in nodes)


@pytest.fixture(params=["window", "recurrent", "unknown"])
def uncut(request: pytest.FixtureRequest) -> Rig:
    return Rig(request.param)


def test_find_leaves_the_last_token_to_compute() -> None:
    rig = Rig("plain")
    rig.put(1, 2, 3)
    assert rig.found(1, 2, 3) == 2
    assert rig.found(1) == 0
    assert rig.found(1, 2, 3, 4) == 3
    assert rig.found(1, 2, 9, 4) == 2


def test_a_checkpoint_serves_only_its_continuations(uncut: Rig) -> None:
    uncut.put(1, 2, 3)
    assert uncut.found(1, 2, 3) == 0
    assert uncut.found(1, 2, 4, 5) == 0
    assert uncut.found(1, 2, 3, 4) == 3
    uncut.put(1, 2, 3, 4, 5, 6)
    uncut.put(1, 2, 3, 8)
    assert uncut.found(1, 2, 3, 4, 5, 6) == 3
    assert uncut.found(1, 2, 3, 4, 5, 6, 7) == 6
    assert uncut.found(1, 2, 3, 8, 8) == 4
    assert uncut.tier.shared((1, 2, 3, 4, 9)) == 4
    uncut.check()


@pytest.mark.parametrize("kind", ["plain", "window"])
def test_a_hundred_chats_store_their_common_beginning_once(kind: str) -> None:
    rig = Rig(kind, 10**7)
    beginning = tuple(range(500))
    alone = Rig(kind, 10**7)
    alone.put(*beginning)
    for chat in range(100):
        rig.put(*beginning, *(5000 + chat,) * 10)
    rig.check()
    tails = sum(len(tail_of((*beginning, *(5000 + chat,) * 10))) for chat in range(100)) if kind == "window" else 0
    assert rig.tier.n_bytes < alone.tier.n_bytes + tails + 100 * (10 * CELL + 1300)
    assert all(rig.found(*beginning, *(5000 + chat,) * 10, 1) == 510 for chat in range(100))


def test_covers_means_nothing_new_to_store() -> None:
    rig = Rig("plain")
    rig.put(1, 2, 3)
    assert rig.tier.covers([1, 2])
    assert rig.tier.covers([1, 2, 3])
    assert not rig.tier.covers([1, 2, 3, 4])


def test_least_recently_used_ends_go_first() -> None:
    rig = Rig("plain")
    for last in (1, 2, 3):
        rig.put(7, 7, last, last)
    rig.tier.capacity = rig.tier.n_bytes
    assert rig.tier.covers([7, 7, 1, 1])
    rig.put(7, 7, 4, 4)
    assert rig.fallen == [(b"", (7, 7, 2, 2))]
    assert (rig.found(7, 7, 1, 1, 0), rig.found(7, 7, 2, 2, 0), rig.found(7, 7, 3, 3, 0)) == (4, 2, 4)
    assert rig.tier.n_evicted == 1
    rig.check()


def test_a_beginning_outlives_all_that_has_it_and_is_not_announced_again() -> None:
    rig = Rig("plain")
    rig.put(1, 2, 3, 4)
    rig.put(1, 2, 5, 6)
    for _ in range(3):
        rig.tier._evict(next(iter(rig.tier._order)))
        rig.check()
    assert rig.fallen == [(b"", (1, 2, 3, 4)), (b"", (1, 2, 5, 6))]
    assert len(rig.tier) == rig.tier.n_bytes == 0


def test_checkpoints_fall_out_one_by_one() -> None:
    rig = Rig("window")
    for n in (2, 4, 6):
        rig.put(*range(n))
    assert rig.found(0, 1, 9) == 2
    rig.tier._evict(next(iter(rig.tier._order)))
    rig.check()
    assert [len(tokens) for _, tokens in rig.fallen] == [4]
    assert (rig.found(0, 1, 2, 3, 9), rig.found(*range(6), 9)) == (2, 6)


def test_what_never_fits_is_not_kept_and_drives_nothing_out() -> None:
    rig = Rig("plain", 5000)
    rig.put(1, 2)
    rig.put(*range(3, 100))
    assert (rig.found(1, 2, 0), rig.found(*range(3, 100))) == (2, 0)
    off = Rig("plain", 0)
    off.put(1)
    assert len(off.tier) == off.tier.n_bytes == 0


@pytest.mark.parametrize("kind", ["plain", "window", "recurrent", "unknown"])
def test_discarding_takes_all_that_is_suspicious_and_twice_is_harmless(kind: str) -> None:
    rig = Rig(kind)
    rig.put(1, 2)
    rig.put(1, 2, 3, 4)
    rig.put(9)
    found = rig.tier.find([1, 2, 3])
    assert found is not None
    rig.tier.discard(found)
    rig.tier.discard(found)
    rig.check()
    assert (rig.found(1, 2, 3), rig.found(9, 9)) == (0, 1)


@pytest.mark.parametrize("kind", ["plain", "window", "recurrent", "unknown"])
def test_forgetting_leaves_what_others_have_in_common(kind: str) -> None:
    rig = Rig(kind)
    for tokens in ((1, 2), (1, 2, 3, 4), (1, 2, 3, 4, 5), (1, 2, 7)):
        rig.put(*tokens)
    rig.tier.forget((1, 2, 3, 4, 5))
    rig.check()
    assert [rig.found(*tokens, 0) for tokens in ((1, 2), (1, 2, 3, 4, 5), (1, 2, 7))] == [2, 2, 3]
    rig.tier.forget((1, 2))
    rig.tier.forget((9,))
    rig.check()
    assert rig.found(1, 2, 7, 0) == 3


@pytest.mark.parametrize("kind", ["plain", "window", "recurrent", "unknown"])
def test_entries_are_all_that_rests_the_newest_first(kind: str) -> None:
    rig = Rig(kind)
    for tokens in ((1, 2), (1, 2, 3), (4,)):
        rig.put(*tokens)
    rig.tier.covers((1, 2, 3))
    told = []
    for key, stored, state in rig.tier.entries():
        assert key == b""
        np.testing.assert_array_equal(state, rig.state(stored))
        told.append(stored)
    assert told == ([(1, 2, 3), (4,)] if kind == "plain" else [(1, 2, 3), (4,), (1, 2)])


def test_a_state_of_another_length_is_refused() -> None:
    rig = Rig("plain")
    with pytest.raises(StateFormatError, match="3 cells for 4 tokens"):
        rig.tier.put((1, 2, 3, 4), make_state((1, 2, 3)))
    with pytest.raises(StateFormatError):
        rig.tier.put((1, 2, 3), np.ones(100, np.uint8))
    assert len(rig.tier) == rig.tier.n_bytes == 0


def test_what_cannot_be_taken_apart_is_kept_whole() -> None:
    """Cells of pictures share positions."""
    state = make_state((1, 2, 3)).copy()
    state[16 + 12 : 16 + 16] = 0
    tier = HostTier(10**6, can_cut=True, shape=SHAPE)
    tier.put((1, 2, 3), state)
    found = tier.find((1, 2, 3, 4))
    assert found is not None and tier.load(found) is state
    assert tier.find((1, 2, 4, 5)) is None


def test_the_forms_of_values_mix() -> None:
    """What was kept with values lying one way goes on with values lying the other way."""
    tier = HostTier(10**6, can_cut=True, shape=SHAPE)
    tier.put((1, 2, 3), make_state((1, 2, 3), transposed=False))
    tier.put((1, 2, 3, 4), make_state((1, 2, 3, 4), transposed=True))
    found = tier.find((1, 2, 3, 4, 5))
    assert found is not None
    np.testing.assert_array_equal(tier.load(found), make_state((1, 2, 3, 4), transposed=True))


KEYS = st.sampled_from([b"", b"a", b"b"])
TOKENS = st.lists(st.integers(0, 3), min_size=1, max_size=7).map(tuple)
OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["put", "put", "put", "find", "covers", "evict", "discard", "forget"]), KEYS, TOKENS), max_size=40
)


@pytest.mark.parametrize("kind", ["plain", "window", "recurrent", "unknown"])
@settings(max_examples=60)
@given(capacity=st.integers(1000, 12_000), operations=OPERATIONS)
def test_random_operations(kind: str, capacity: int, operations: list[tuple[str, bytes, Tokens]]) -> None:
    """Whatever is done: the cap holds, the books are right, and what comes back is exactly what was put in under its key."""
    rig = Rig(kind, capacity)
    ever: set[tuple[bytes, Tokens]] = set()
    for what, key, tokens in operations:
        if what == "put":
            rig.put(*tokens, key=key)
            ever.add((key, tokens))
        elif what == "covers":
            assert rig.tier.covers(tokens, key) == (rig.found(*tokens, 9, key=key) == len(tokens))
        elif what == "evict" and rig.tier._order:
            rig.tier._evict(next(node for node in rig.tier._order if kind != "plain" or not node.children))
        elif what == "forget":
            rig.tier.forget(tokens, key)
            assert not rig.tier.covers(tokens, key) or any(len(one) > len(tokens) for other, one in ever if other == key)
        elif what == "discard" and (found := rig.tier.find(tokens, key)):
            rig.tier.discard(found)
        else:
            length = rig.found(*tokens, key=key)
            stored = {one for other, one in ever if other == key}
            if kind == "plain":
                assert not length or any(one[:length] == tokens[:length] for one in stored)
            else:
                assert not length or tokens[:length] in stored
        rig.check()


@pytest.mark.parametrize("kind", ["plain", "window"])
def test_with_room_everything_is_found(kind: str) -> None:
    rig = Rig(kind, 10**7)
    chats = [tuple((7 * i * j) % 5 for j in range(1, 40)) for i in range(1, 30)]
    for chat in chats:
        for n in (10, 25, 39):
            rig.put(*chat[:n])
    for chat in chats:
        assert [rig.found(*chat[:n], 99) for n in (10, 25, 39)] == [10, 25, 39]
    rig.check()


def test_the_cap_is_on_what_is_really_taken() -> None:
    """Allocated memory stays under what is counted, however small the pieces are."""
    capacity = 300_000
    tier = HostTier(capacity, can_cut=True, shape=SHAPE)
    tokens = [1000 + i for i in range(60)]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for chat in range(500):
            own = (*tokens[: chat % 50], 2000 + chat, chat)
            tier.put(own, make_state(own))
            del own
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert tier.n_evicted > 20
    assert 0.5 * capacity < taken <= tier.n_bytes <= capacity
