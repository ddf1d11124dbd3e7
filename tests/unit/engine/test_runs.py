"""Places and positions of vectors among tokens, and which vectors are kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from puna.engine.media.encodings import OVERHEAD, Encodings
from puna.engine.media.runs import NO_RUNS, Run, Runs, ids


@dataclass(frozen=True)
class Fake:
    """Vectors that stand in one line, or in rows of one time."""

    n_tokens: int
    n_pos: int
    causal: bool = True

    def positions(self, start: int) -> npt.NDArray[np.int32]:
        line = np.arange(self.n_tokens, dtype=np.int32)
        return (line if self.n_pos == self.n_tokens else 0 * line)[None, :] + np.int32(start)


# 5 tokens, a picture of 12 vectors and 4 positions, 3 tokens, a sound of 6, then tokens
RUNS = Runs((Run(5, 5, Fake(12, 4), b"a"), Run(20, 12, Fake(6, 6), b"b")))


def test_nothing_but_tokens() -> None:
    assert not NO_RUNS
    assert [NO_RUNS.clip(n) for n in range(4)] == [NO_RUNS.span(n) for n in range(4)] == [0, 1, 2, 3]
    assert NO_RUNS.at(0) is None
    assert NO_RUNS.alike(7) > 1 << 20


def test_runs_are_used_whole() -> None:
    assert [RUNS.clip(n) for n in (0, 4, 5, 6, 16, 17, 18, 20, 21, 25, 26, 40)] == [0, 4, 5, 5, 5, 17, 18, 20, 20, 20, 26, 40]


def test_a_step_has_tokens_or_vectors_of_one_run() -> None:
    assert [RUNS.alike(n) for n in (0, 4, 5, 16, 17, 19, 20, 25)] == [5, 1, 12, 1, 3, 1, 6, 1]


def test_positions_count_what_comes_before() -> None:
    assert [RUNS.position(n) for n in (0, 4, 17, 19, 26, 30)] == [0, 4, 9, 11, 18, 22]


def test_the_span_is_the_largest_position_and_one() -> None:
    assert RUNS.span(0) == 0
    assert [RUNS.span(n) for n in (5, 6, 17, 18, 20, 21, 26, 27)] == [5, 6, 6, 10, 12, 13, 18, 19]


def test_ids_are_no_tokens_and_differ_by_name() -> None:
    first, second = ids(b"one", 500), ids(b"two", 500)
    assert max(first) < -1 and min(first) >= -(2**31)
    assert first == ids(b"one", 500)
    assert first[:3] == ids(b"one", 3)
    assert sum(a == b for a, b in zip(first, second, strict=True)) == 0


def test_encodings_fall_out_by_last_use() -> None:
    size = 4 * 64 + OVERHEAD
    kept = Encodings(2 * size)
    vectors = [np.full((8, 8), i, np.float32) for i in range(3)]
    kept.put(b"0", vectors[0])
    kept.put(b"1", vectors[1])
    assert kept.get(b"0") is vectors[0]
    kept.put(b"2", vectors[2])
    assert (kept.get(b"1"), kept.n_bytes, kept.n_hits) == (None, 2 * size, 1)
    assert kept.get(b"0") is vectors[0]
    kept.put(b"huge", np.zeros((100, 100), np.float32))
    assert kept.get(b"huge") is None and kept.get(b"2") is vectors[2]
    none = Encodings(0)
    none.put(b"0", vectors[0])
    assert (none.get(b"0"), none.n_bytes) == (None, 0)
