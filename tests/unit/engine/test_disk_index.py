"""Which file serves a prompt, and which file goes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from puna.engine.disk.index import DiskIndex, Listed, Record, choose_victims
from puna.engine.sequence import common_prefix

TOKENS = st.lists(st.integers(0, 2), min_size=1, max_size=6).map(tuple)
KEYS = st.sampled_from([b"", b"a"])


def record(tokens: tuple[int, ...], key: bytes = b"") -> Record:
    return Record(f"{key!r}{tokens}", key, 100 + len(tokens))


def add(index: DiskIndex, tokens: tuple[int, ...], key: bytes = b"") -> list[Record]:
    return index.add(record(tokens, key), tokens)


def test_a_longer_conversation_makes_its_beginning_redundant() -> None:
    index = DiskIndex(can_cut=True)
    assert add(index, (1, 2)) == []
    assert add(index, (1, 3)) == []
    assert add(index, (1, 2, 3)) == [record((1, 2))]
    assert add(index, (1, 2, 3)) == []
    assert (len(index), index.n_bytes) == (2, 102 + 103)
    assert index.find((1, 2, 9), b"") == (record((1, 2, 3)), 2)


def test_states_that_cannot_be_cut_serve_what_goes_on_from_them() -> None:
    index = DiskIndex(can_cut=False)
    add(index, (1, 2))
    assert add(index, (1, 2, 3)) == []
    assert index.find((1, 2, 9), b"") == (record((1, 2)), 2)
    assert index.find((1, 9), b"") is None
    assert index.covers((1, 2), b"") == record((1, 2))


def test_two_files_of_the_same_tokens() -> None:
    index = DiskIndex(can_cut=True)
    add(index, (1, 2))
    other = Record("other", b"", 5)
    assert index.add(other, (1, 2)) == [record((1, 2))]
    assert index.tokens(other) == (1, 2)
    index.remove(record((1, 2)).name)
    assert index.covers((1,), b"") == other


@given(st.lists(st.tuples(KEYS, TOKENS, st.booleans()), max_size=20), TOKENS, KEYS, st.booleans())
def test_what_is_found_is_the_best_there_is(
    steps: list[tuple[bytes, tuple[int, ...], bool]], wanted: tuple[int, ...], key: bytes, can_cut: bool
) -> None:
    index = DiskIndex(can_cut=can_cut)
    kept: dict[str, tuple[Record, tuple[int, ...]]] = {}
    for own, tokens, put in steps:
        one = record(tokens, own)
        if put:
            for gone in index.add(one, tokens):
                del kept[gone.name]
            kept[one.name] = one, tokens
        else:
            index.remove(one.name)
            kept.pop(one.name, None)
    assert (len(index), index.n_bytes) == (len(kept), sum(one.n_bytes for one, _ in kept.values()))
    held = {tokens for one, tokens in kept.values() if one.key == key}
    begins = {tokens for tokens in held if wanted[: len(tokens)] == tokens}
    lengths = [common_prefix(list(wanted), list(tokens)) for tokens in held] if can_cut else [len(tokens) for tokens in begins]
    found = index.find(wanted, key)
    assert (found[1] if found else 0) == max(lengths, default=0)
    assert found is None or index.tokens(found[0])[: found[1]] == wanted[: found[1]]
    assert {one.name for one in index.within(wanted, key)} == {record(tokens, key).name for tokens in begins}


def test_the_least_recently_used_files_go() -> None:
    files = [Listed("new", 50, 3.0), Listed("old", 40, 1.0), Listed("middle", 30, 2.0)]
    assert choose_victims(files, 10, capacity=130, free=1000) == []
    assert choose_victims(files, 11, capacity=130, free=1000) == ["old"]
    assert choose_victims(files, 60, capacity=130, free=1000) == ["old", "middle"]
    assert choose_victims(files, 131, capacity=130, free=1000) is None


def test_a_disk_that_fills_up_counts_like_the_cap() -> None:
    files = [Listed("new", 50, 3.0), Listed("old", 40, 1.0)]
    assert choose_victims(files, 30, capacity=1000, free=0) == ["old"]
    assert choose_victims(files, 100, capacity=1000, free=0) is None
    assert choose_victims(files, 100, capacity=1000, free=-10) is None


@given(st.lists(st.tuples(st.integers(0, 99), st.floats(0, 9)), max_size=9), st.integers(0, 300), st.integers(0, 400))
def test_what_stays_and_what_comes_fit_together(sizes: list[tuple[int, float]], needed: int, capacity: int) -> None:
    files = [Listed(str(i), size, used) for i, (size, used) in enumerate(sizes)]
    victims = choose_victims(files, needed, capacity=capacity, free=10**9)
    if victims is None:
        assert needed > capacity
    else:
        assert sum(file.n_bytes for file in files if file.name not in victims) + needed <= capacity
