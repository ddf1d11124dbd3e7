"""Which inputs share a batch."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from puna.engine.packing import Input, PoolingQueue
from puna.ipc.frames import Embed


def job(request: int, *lengths: int) -> Embed:
    """A request with inputs of these lengths."""
    inputs = tuple(array("i", [request] * length).tobytes() for length in lengths)
    return Embed(id=request, inputs=inputs, indices=tuple(range(len(lengths))))


def names(batch: list[Input]) -> list[tuple[int, int]]:
    return [(one.request, one.index) for one in batch]


def queue(*jobs: Embed) -> PoolingQueue:
    result = PoolingQueue()
    for one in jobs:
        result.add(one)
    return result


def test_requests_take_turns() -> None:
    waiting = queue(job(1, 10, 10, 10, 10), job(2, 10), job(3, 10, 10))
    assert names(waiting.take(40, 64)) == [(1, 0), (2, 0), (3, 0), (1, 1)]
    assert names(waiting.take(100, 64)) == [(3, 1), (1, 2), (1, 3)]
    assert waiting.take(100, 64) == [] and len(waiting) == 0


def test_the_number_of_inputs_is_bounded() -> None:
    waiting = queue(job(1, 1, 1, 1, 1, 1))
    assert [len(waiting.take(100, 2)) for _ in range(3)] == [2, 2, 1]


def test_a_first_input_may_have_any_length_and_what_did_not_fit_comes_first_next_time() -> None:
    waiting = queue(job(1, 5, 5), job(2, 90), job(3, 5))
    assert names(waiting.take(20, 64)) == [(1, 0), (3, 0), (1, 1)]
    assert names(waiting.take(20, 64)) == [(2, 0)]


def test_an_input_that_is_too_long_for_company_is_alone() -> None:
    waiting = queue(job(1, 5), job(2, 30), job(3, 5))
    assert names(waiting.take(100, 64, most_each=20)) == [(1, 0), (3, 0)]
    waiting.add(job(4, 5))
    assert names(waiting.take(100, 64, most_each=20)) == [(2, 0)]
    assert names(waiting.take(100, 64, most_each=20)) == [(4, 0)]


def test_a_long_input_does_not_wait_for_ever() -> None:
    waiting = queue(job(1, 90))
    for request in range(2, 50):
        waiting.add(job(request, 4, 4, 4))
        if (1, 0) in names(waiting.take(8, 1)):
            return
    raise AssertionError("it never came")


def test_a_request_can_be_forgotten() -> None:
    waiting = queue(job(1, 5, 5), job(2, 5))
    waiting.take(5, 1)
    assert waiting.remove(1) and not waiting.remove(1) and not waiting.remove(7)
    assert names(waiting.take(100, 64)) == [(2, 0)]


def test_inputs_of_a_failed_batch_come_again_alone() -> None:
    waiting = queue(job(1, 5, 5), job(2, 5))
    waiting.retry(waiting.take(15, 64))
    seen = []
    while len(waiting):
        batch = waiting.take(100, 64)
        assert len(batch) == 1 and batch[0].alone
        seen += names(batch)
    assert sorted(seen) == [(1, 0), (1, 1), (2, 0)]


@given(
    st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=6), max_size=6),
    st.integers(1, 60),
    st.integers(1, 5),
)
def test_every_input_comes_once_and_batches_keep_their_bounds(lengths: list[list[int]], most: int, inputs: int) -> None:
    waiting = queue(*(job(request, *sizes) for request, sizes in enumerate(lengths)))
    seen: list[tuple[int, int]] = []
    while len(waiting):
        batch = waiting.take(most, inputs)
        assert 1 <= len(batch) <= inputs
        assert len(batch) == 1 or sum(one.n_tokens for one in batch) <= max(most, batch[0].n_tokens)
        seen += names(batch)
    assert sorted(seen) == [(request, index) for request, sizes in enumerate(lengths) for index in range(len(sizes))]
