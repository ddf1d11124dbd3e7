"""Defaults that fit the machine."""

from __future__ import annotations

import pytest

from puna.engine.sizing import MOST_SLOTS, Size, cell_bytes, choose_cache, choose_mmap, choose_size
from puna.errors import StartupError

GIB = 1024**3


def test_cell_bytes_follow_the_metadata() -> None:
    metadata = {"general.architecture": "llama", "llama.attention.head_count": "9", "llama.attention.head_count_kv": "3"}
    assert cell_bytes(metadata, 30, 576, "f16", "f16") == 30 * 3 * 64 * 2 * 2
    assert cell_bytes(metadata, 30, 576, "q8_0", "f16") == 30 * 3 * 64 * 3 + 30 * 3 * 64 // 16
    explicit = {**metadata, "llama.attention.key_length": "128", "llama.attention.value_length": "128"}
    assert cell_bytes(explicit, 30, 576, "f16", "f16") == 30 * 3 * 128 * 4


def test_heads_that_differ_by_layer_give_an_upper_bound() -> None:
    metadata = {"general.architecture": "x", "x.attention.head_count": "8", "x.attention.head_count_kv": "[2, 4, 2]"}
    assert cell_bytes(metadata, 3, 64, "f16", "f16") == 3 * 4 * 8 * 2 * 2


def test_a_model_that_says_nothing_still_gets_a_size() -> None:
    assert cell_bytes({}, 2, 64, "f16", "f16") == 2 * 64 * 4


def size(n_ctx: int = 0, n_slots: int = 0, n_ctx_train: int = 8192, free: int = 16 * GIB) -> Size:
    return choose_size(n_ctx=n_ctx, n_slots=n_slots, n_ctx_train=n_ctx_train, cell=20_000, free=free)


def test_a_small_model_starts_small_and_may_grow_to_its_whole_length() -> None:
    chosen = size()
    assert (chosen.n_ctx, chosen.n_slots, chosen.first) == (8192, MOST_SLOTS, 2048)
    assert [chosen.next_length(n) for n in (1, 2048, 2049, 4097, 9000)] == [2048, 2048, 4096, 8192, 8192]
    assert [chosen.seats(n) for n in (2048, 4096, 8192)] == [16, 16, 16]


def test_short_sequences_may_have_a_context_of_their_own_first() -> None:
    chosen = choose_size(n_ctx=0, n_slots=0, n_ctx_train=8192, cell=20_000, free=16 * GIB, short=True)
    assert (chosen.first, chosen.n_slots) == (512, MOST_SLOTS)
    assert [chosen.next_length(n) for n in (512, 513, 2049)] == [512, 2048, 4096]
    assert chosen.next_length(chosen.least(reproducible=True)) == 2048
    assert chosen.least(reproducible=False) == size().least(reproducible=True) == 1


def test_little_memory_means_fewer_slots_and_a_lower_limit() -> None:
    assert size(free=GIB).n_slots == 2
    assert size(free=GIB).n_ctx == 8192
    assert size(free=GIB // 4).n_ctx == 4096
    assert (size(free=0).n_ctx, size(free=0).n_slots) == (2048, 1)


def test_long_sequences_leave_fewer_seats() -> None:
    chosen = size(n_ctx_train=131_072)
    assert chosen.n_ctx == 131_072
    assert [chosen.seats(n) for n in (2048, 32_768, 131_072)] == [16, 10, 2]


def test_only_as_many_seats_are_made_as_are_wanted() -> None:
    chosen = size(n_ctx_train=131_072)
    assert [chosen.seats_made(2048, n) for n in (0, 1, 99)] == [16, 16, 16]  # the first length
    assert [chosen.seats_made(4096, n) for n in (0, 4, 5, 16, 99)] == [4, 4, 16, 16, 16]
    assert [chosen.seats_made(32_768, n) for n in (4, 5)] == [4, 10]
    assert [chosen.seats_made(131_072, n) for n in (1, 5)] == [2, 2]
    fixed = choose_size(n_ctx=0, n_slots=0, n_ctx_train=32_768, cell=20_000, free=16 * GIB, fixed=True)
    assert fixed.seats_made(8192, 1) == 10


def test_what_the_user_asked_for_is_kept() -> None:
    chosen = size(n_ctx=20_000, n_slots=3, free=GIB)
    assert (chosen.n_ctx, chosen.n_slots, chosen.first) == (20_000, 3, 2048)
    assert [chosen.seats(n) for n in (2048, 8192, 20_000)] == [3, 2, 1]
    assert size(n_ctx=512).first == 512
    assert size(n_slots=32).n_slots == 32
    assert size(n_slots=8, free=GIB).n_ctx == 2048


def test_seats_that_must_stay_are_chosen_for_the_greatest_length() -> None:
    chosen = choose_size(n_ctx=0, n_slots=0, n_ctx_train=32_768, cell=20_000, free=16 * GIB, fixed=True)
    assert chosen.n_slots == 10
    assert {chosen.seats(n) for n in (2048, 8192, 32_768)} == {10}


def test_a_length_that_cannot_fit_is_refused_with_the_figures() -> None:
    with pytest.raises(StartupError, match=r"100000 tokens takes about 2,000 MB and 1,074 MB are free.*-c"):
        size(n_ctx=100_000, free=GIB)


def test_cache_is_a_share_of_free_memory_unless_said() -> None:
    assert choose_cache(0, GIB) == 0
    assert choose_cache(123, GIB) == 123
    assert choose_cache(-1, 10 * GIB) == GIB
    assert choose_cache(-1, 1000 * GIB) == 8 * GIB


def test_weights_are_read_into_large_pages_where_memory_is_ample() -> None:
    assert not choose_mmap(None, n_bytes=GIB, free=4 * GIB, large_pages=True)
    assert choose_mmap(None, n_bytes=GIB, free=3 * GIB, large_pages=True)
    assert choose_mmap(None, n_bytes=GIB, free=64 * GIB, large_pages=False)
    assert choose_mmap(True, n_bytes=1, free=GIB, large_pages=True)
    assert not choose_mmap(False, n_bytes=9 * GIB, free=GIB, large_pages=False)
