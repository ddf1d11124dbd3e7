"""How much prefill a step gets."""

from __future__ import annotations

from puna.engine.budget import StepBudget


def learned(**more: float) -> StepBudget:
    budget = StepBudget(n_ubatch=512, **more)  # type: ignore[arg-type]  # floats that stand for ints too
    for _ in range(50):
        budget.observe(1, 0, 0.02)
        budget.observe(8, 0, 0.06)
        budget.observe(0, 128, 0.64)  # 5 ms a token
    return budget


def test_alone_a_prompt_gets_long_steps() -> None:
    assert learned(idle_target=0.5).tokens(0) in range(95, 106)


def test_beside_streams_a_step_stays_within_the_stretch() -> None:
    budget = learned(stretch=3.0)
    assert budget.tokens(8) in range(22, 26)  # 2 x 60 ms at 5 ms a token
    assert budget.tokens(1) == 8  # the least that is worth a step


def test_never_more_than_the_engine_computes_at_once() -> None:
    budget = StepBudget(n_ubatch=64)
    for _ in range(20):
        budget.observe(0, 64, 0.001)
    assert budget.tokens(0) == 64


def test_unknown_machine_starts_carefully() -> None:
    budget = StepBudget(n_ubatch=512)
    assert budget.tokens(0) == 128
    assert budget.tokens(3) == 32
    assert StepBudget(n_ubatch=16).tokens(0) == 16


def test_a_number_of_streams_not_seen_yet_borrows_from_the_nearest() -> None:
    budget = learned()
    assert budget.quiet(7) == budget.quiet(8)
    assert budget.quiet(2) == budget.quiet(1)


def test_a_tiny_remainder_does_not_spoil_the_estimate() -> None:
    budget = learned()
    before = budget.tokens(0)
    for _ in range(50):
        budget.observe(0, 1, 0.02)
    assert budget.tokens(0) == before
