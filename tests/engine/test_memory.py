"""Both layouts give back exactly what was put in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from puna.engine.memory import MemoryFault, SplitMemory, UnifiedMemory
from puna.llama.batch import Batch
from puna.llama.context import Context, FloatArray
from puna.llama.model import Model

TOKENS = [5 + i % 200 for i in range(60)]


def assert_same(actual: FloatArray, expected: FloatArray, *, exact: bool) -> None:
    """Equal logits. In one pool the order of cells, and with it the order of sums, may differ."""
    if exact:
        np.testing.assert_array_equal(actual, expected)
    else:
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-4)


class Rig:
    """A context with one of the layouts over it."""

    def __init__(self, path: Path, layout: str) -> None:
        self.model = Model(str(path))
        unified = layout == "unified"
        self.exact = not unified
        self.context = Context(
            self.model, n_ctx=1024, n_seq_max=4, n_batch=256, n_ubatch=256, n_threads=1, n_threads_batch=1,
            unified=unified, flash_attention=False,
        )  # fmt: skip
        self.memory = UnifiedMemory(self.context) if unified else SplitMemory(self.context)
        self.batch = Batch(256)

    def decode(self, seat: int, tokens: list[int], start: int) -> FloatArray:
        self.batch.clear()
        row = self.batch.add(tokens, start, seat, n_logits=1)
        self.context.decode(self.batch)
        return self.context.logits(row).copy()

    def close(self) -> None:
        self.context.close()
        self.model.close()


@pytest.fixture(params=["split", "unified"])
def rig(request: pytest.FixtureRequest, tiny_llama: Path) -> Iterator[Rig]:
    rig = Rig(tiny_llama, request.param)
    yield rig
    rig.close()


@pytest.mark.parametrize("keep", [60, 41, 1])
def test_waking_gives_equal_logits(rig: Rig, keep: int) -> None:
    rig.decode(0, TOKENS, 0)
    state = rig.memory.rest(0)
    if keep < len(TOKENS):
        assert rig.context.cut(0, keep)
    expected = rig.decode(0, [7], keep)
    rig.memory.drop(0)
    rig.memory.wake(2, state, keep)
    assert rig.memory.length(2) == keep
    assert_same(rig.decode(2, [7], keep), expected, exact=rig.exact)


@pytest.mark.parametrize("keep", [60, 41, 1])
def test_sharing_gives_equal_logits_and_leaves_the_source_alone(rig: Rig, keep: int) -> None:
    rig.decode(1, TOKENS, 0)
    rig.memory.share(1, [(0, keep), (3, keep)])
    assert (rig.memory.length(0), rig.memory.length(3), rig.memory.length(1)) == (keep, keep, 60)
    shared = rig.decode(0, [7], keep)
    rig.memory.drop(0)
    rig.memory.drop(3)
    if keep < len(TOKENS):
        assert rig.context.cut(1, keep)
    assert_same(shared, rig.decode(1, [7], keep), exact=rig.exact)


def test_moving_leaves_nothing_behind(rig: Rig) -> None:
    rig.decode(3, TOKENS, 0)
    rig.memory.share(3, [(1, 60)])
    expected = rig.decode(1, [7], 60)
    rig.memory.drop(1)
    rig.memory.move(3, 0)
    assert (rig.memory.length(3), rig.memory.length(0)) == (0, 60)
    assert_same(rig.decode(0, [7], 60), expected, exact=rig.exact)


def test_a_shift_leaves_those_alone_who_share_its_cells(rig: Rig) -> None:
    rig.decode(0, TOKENS, 0)
    rig.memory.share(0, [(1, 60)])
    expected = rig.decode(1, [7], 60)
    assert rig.context.cut(1, 60)
    rig.memory.shift(0, 10, 20)
    rig.decode(0, [9], 40)
    assert (rig.memory.length(0), rig.memory.length(1)) == (41, 60)
    assert_same(rig.decode(1, [7], 60), expected, exact=rig.exact)


def test_a_state_that_was_shared_at_once_can_rest_at_once(rig: Rig) -> None:
    """No copy is left pending until the next decode."""
    rig.decode(0, TOKENS, 0)
    rig.memory.share(0, [(1, 60)])
    state = rig.memory.rest(1)
    expected = rig.decode(0, [7], 60)
    rig.memory.drop(1)
    rig.memory.wake(1, state, 60)
    assert_same(rig.decode(1, [7], 60), expected, exact=rig.exact)


def test_a_wrong_length_or_a_damaged_state_is_a_fault_and_leaves_an_empty_seat(rig: Rig) -> None:
    rig.decode(0, TOKENS, 0)
    state = rig.memory.rest(0)
    with pytest.raises(MemoryFault):
        rig.memory.wake(1, state, 61)
    assert rig.memory.length(1) == 0
    with pytest.raises(MemoryFault):
        rig.memory.wake(1, state[: len(state) // 2].copy(), 60)
    assert rig.memory.length(1) == 0


@pytest.mark.parametrize("layout", ["split", "unified"])
def test_a_recurrent_state_is_shared_whole_and_never_cut(tiny_mamba: Path, layout: str) -> None:
    rig = Rig(tiny_mamba, layout)
    rig.decode(0, TOKENS, 0)
    rig.memory.share(0, [(1, 60)])
    np.testing.assert_array_equal(rig.decode(1, [7], 60), rig.decode(0, [7], 60))
    with pytest.raises(MemoryFault):
        rig.memory.wake(2, rig.memory.rest(0), 40)
    assert rig.memory.length(2) == 0
    rig.close()
