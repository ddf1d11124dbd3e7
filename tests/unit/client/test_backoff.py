"""Restarts at once after work, ever more slowly without."""

from __future__ import annotations

import pytest

from puna.client.backoff import HEALTHY, MOST, Backoff


def test_waits_double_up_to_the_most() -> None:
    backoff = Backoff()
    waits = [backoff.died(progress=False, lived=0.0) for _ in range(9)]
    assert waits == pytest.approx([0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5])
    assert all(backoff.died(progress=False, lived=0.0) == MOST for _ in range(2000))


@pytest.mark.parametrize(("progress", "lived"), [(True, 0.0), (False, HEALTHY)])
def test_a_worker_that_was_of_use_starts_it_over(progress: bool, lived: float) -> None:
    backoff = Backoff()
    for _ in range(5):
        backoff.died(progress=False, lived=0.0)
    assert backoff.died(progress=progress, lived=lived) == 0
    assert backoff.died(progress=False, lived=0.0) == 0
    assert backoff.died(progress=False, lived=0.0) == pytest.approx(0.1)
