"""When a context that has grown becomes smaller again."""

from __future__ import annotations

from puna.engine.sequence import USUAL_ANSWER, Sequence
from puna.engine.shrinking import MOST_PATIENCE, ShrinkPolicy
from puna.ipc.frames import Submit
from puna.types import Generation


def grown(patience: float = 5.0, seconds: float = 0.0) -> ShrinkPolicy:
    policy = ShrinkPolicy(patience)
    policy.grew(100.0, seconds)
    return policy


def test_it_waits_for_as_long_as_the_length_has_not_been_needed() -> None:
    policy = grown()
    assert policy.wait(100.0) == 5.0
    assert policy.wait(104.0) == 1.0
    policy.needed(104.0)
    assert policy.wait(104.0) == 5.0
    assert policy.wait(109.0) == policy.wait(200.0) == 0.0


def test_what_takes_long_is_done_seldom() -> None:
    assert grown(seconds=0.2).wait(100.0) == 10.0
    policy = grown(seconds=0.2)
    policy.shrank(200.0, 0.3)
    policy.grew(1000.0, 0.2)
    assert policy.wait(1000.0) == 25.0


def changes(period: float, duration: float) -> int:
    """How often the context changes when a long prompt comes every `period` seconds among short ones."""
    policy, large, n = ShrinkPolicy(), False, 0
    for step in range(int(duration * 10)):
        now = step / 10
        if step % int(period * 10) == 0:
            policy.needed(now)
            if not large:
                policy.grew(now, 0.05)
                large, n = True, n + 1
        elif large and policy.wait(now) <= 0:
            policy.shrank(now, 0.05)
            large, n = False, n + 1
    return n


def test_mixed_loads_do_not_make_it_change_all_the_time() -> None:
    assert changes(period=3.0, duration=3600) == 1
    assert changes(period=8.0, duration=3600) <= 4


def test_changing_takes_a_small_share_of_the_time_under_any_load() -> None:
    for period in (1, 4, 5, 6, 7, 10, 12, 20, 30, 100):
        assert changes(period=period, duration=3600) * 0.05 <= 3600 / 50, period


def test_rare_long_prompts_leave_it_small_for_most_of_the_time() -> None:
    assert changes(period=600.0, duration=3600) == 12


def test_patience_has_an_end_and_comes_back() -> None:
    policy = grown()
    now = 100.0
    for _ in range(20):
        now += policy.wait(now)
        policy.shrank(now, 0.0)
        policy.grew(now, 0.0)
    assert policy.wait(now) == MOST_PATIENCE
    for _ in range(20):
        now += policy.wait(now)
        policy.shrank(now, 0.0)
        now += 5 * MOST_PATIENCE
        policy.grew(now, 0.0)
    assert policy.wait(now) == 5.0


def test_what_a_request_is_expected_to_become() -> None:
    def expected(max_tokens: int, produced: tuple[int, ...] = ()) -> int:
        return Sequence(
            Submit(id=1, generation=Generation(prompt=(1, 2, 3), max_tokens=max_tokens), produced=produced), 0.0
        ).n_expected

    assert expected(0) == 3
    assert expected(10) == expected(10, (4, 5)) == 13
    assert expected(-1) == 3 + USUAL_ANSWER
    assert expected(1, (4, 5)) == 5
