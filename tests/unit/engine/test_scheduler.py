"""Admission, sharing, gaps and plans, without a model."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from puna.engine.adapters import AdapterSet, Phase
from puna.engine.scheduler import Scheduler
from puna.engine.sequence import Sequence, common_prefix
from puna.ipc.frames import Submit
from puna.types import Generation


def sequence(id: int, n: int = 10, *, done: int = 0, produced: int = 0, tokens: tuple[int, ...] = (), **more: object) -> Sequence:
    prompt = tokens or tuple(range(1000 * id, 1000 * id + n))
    generation = Generation(prompt=prompt, **more)  # type: ignore[arg-type]  # passed on
    submit = Submit(id=id, generation=generation, produced=tuple(range(produced)))
    made = Sequence(submit, arrived=0.0)
    made.n_done = done
    made.n_fresh = 1 if produced else 0
    return made


def running(scheduler: Scheduler, *sequences: Sequence) -> list[Sequence]:
    for one in sequences:
        scheduler.add(one)
    return list(scheduler.admit())


def test_requests_are_admitted_in_order_up_to_the_seats() -> None:
    scheduler = Scheduler(2)
    assert [s.id for s in running(scheduler, sequence(1), sequence(2), sequence(3))] == [1, 2]
    first = scheduler.find(1)
    assert first is not None
    scheduler.remove(first)
    assert [(s.id, s.seat) for s in scheduler.admit()] == [(3, 0)]
    assert not scheduler.waiting


def test_slots_follow_the_wish_and_wrap_around() -> None:
    scheduler = Scheduler(4)
    admitted = running(scheduler, sequence(1, id_slot=2), sequence(2, id_slot=6), sequence(3, id_slot=5))  # the second waits
    assert [s.slot for s in admitted] == [2, 1]


def test_decoding_goes_first_and_prefill_keeps_to_the_budget() -> None:
    scheduler = Scheduler(4)
    running(scheduler, sequence(1, 10, done=10, produced=1), sequence(2, 500), sequence(3, 10, done=10, produced=1))
    plan = scheduler.plan(64, 2048)
    assert [(p.sequence.id, p.count) for p in plan.pieces] == [(1, 1), (2, 64), (3, 1)]
    assert (plan.n_decoding, plan.n_prefill) == (2, 64)
    assert [p.reaches_end for p in plan.pieces] == [True, False, True]


def test_tokens_that_a_grammar_forced_are_decoded_at_once() -> None:
    scheduler = Scheduler(2)
    one, two = running(scheduler, sequence(1, 10, done=10, produced=4), sequence(2, 10, done=10, produced=1))
    one.n_fresh = 4
    plan = scheduler.plan(64, 2048)
    assert [(p.sequence.id, p.count, p.reaches_end) for p in plan.pieces] == [(1, 4, True), (2, 1, True)]
    assert (plan.n_decoding, plan.n_prefill) == (2, 0)
    assert two.decoding


def test_a_short_prompt_does_not_wait_for_a_long_one() -> None:
    scheduler = Scheduler(4)
    running(scheduler, sequence(1, 5000), sequence(2, 20), sequence(3, 400))
    counts = {p.sequence.id: p.count for p in scheduler.plan(100, 2048).pieces}
    assert counts == {1: 50, 2: 20, 3: 30}


@given(
    st.lists(st.tuples(st.integers(1, 300), st.booleans()), min_size=1, max_size=8),
    st.integers(1, 300),
    st.integers(8, 300),
)
def test_a_plan_is_never_over_its_bounds_and_never_idle(requests: list[tuple[int, bool]], budget: int, capacity: int) -> None:
    scheduler = Scheduler(8)
    made = [sequence(i, n, done=n, produced=1) if decodes else sequence(i, n) for i, (n, decodes) in enumerate(requests)]
    running(scheduler, *made)
    plan = scheduler.plan(budget, capacity)
    assert plan.pieces
    assert sum(p.count for p in plan.pieces) <= capacity
    assert plan.n_prefill <= budget
    assert [p.sequence.seat for p in plan.pieces] == sorted({p.sequence.seat for p in plan.pieces})
    for piece in plan.pieces:
        assert 1 <= piece.count <= piece.sequence.n_pending
    oldest = next((s for s in made if not s.decoding), None)
    if oldest is not None and plan.n_prefill:
        assert any(p.sequence is oldest for p in plan.pieces)


def test_a_follower_waits_and_its_leader_stops_at_the_shared_part() -> None:
    scheduler = Scheduler(4, share_at_least=8)
    system = tuple(range(100))
    leader, follower = sequence(1, tokens=(*system, 500, 501)), sequence(2, tokens=(*system, 600))
    running(scheduler, leader, follower)
    found, shared = scheduler.best_running(follower)
    assert (found, shared) == (leader, 100)
    assert scheduler.should_wait(leader, shared, 0)
    follower.leader, follower.leader_goal = leader, shared
    assert [(p.sequence.id, p.count) for p in scheduler.plan(512, 2048).pieces] == [(1, 100)]
    leader.n_done = 100
    assert scheduler.ready_followers() == [[follower]]
    scheduler.remove(leader)
    assert follower.leader is None


def test_two_that_lost_their_leader_do_not_wait_for_each_other() -> None:
    scheduler = Scheduler(4)
    common = tuple(range(100))
    leader, first, second = (sequence(i, tokens=(*common, 200 + i)) for i in (1, 2, 3))
    running(scheduler, leader, first, second)
    first.leader, first.leader_goal = leader, 100
    second.leader, second.leader_goal = first, 100
    scheduler.remove(leader)
    assert scheduler.best_running(first) == (None, 0)
    assert scheduler.best_running(second) == (first, 100)


def test_memory_that_cannot_be_cut_is_not_shared_by_one_about_to_jump_past() -> None:
    common = tuple(range(50))
    leader, follower = sequence(1, tokens=(*common, *range(60, 90))), sequence(2, tokens=(*common, *range(60, 80), 5))
    wanted = sequence(3, tokens=(*common, 7, 8))
    scheduler = Scheduler(4, can_cut=False)
    running(scheduler, follower, leader, wanted)
    follower.leader, follower.leader_goal = leader, 70
    assert scheduler.best_running(wanted) == (leader, 50)


def test_nobody_waits_for_a_few_tokens_or_for_what_is_there() -> None:
    scheduler = Scheduler(4, share_at_least=32)
    leader = sequence(1, tokens=tuple(range(40)), done=40)
    assert not scheduler.should_wait(leader, 40, 0)
    leader.n_done = 0
    assert not scheduler.should_wait(leader, 31, 0)
    assert not scheduler.should_wait(leader, 40, 20)
    assert scheduler.should_wait(leader, 40, 8)


def test_memory_that_cannot_be_cut_is_not_shared_once_past_the_common_part() -> None:
    common = tuple(range(50))
    other, wanted = sequence(1, tokens=(*common, 7), done=51), sequence(2, tokens=(*common, 8, 9))
    for can_cut, expected in ((True, 50), (False, 0)):
        scheduler = Scheduler(4, can_cut=can_cut)
        running(scheduler, other, wanted)
        assert scheduler.best_running(wanted)[1] == expected


def test_a_private_prompt_is_never_shared() -> None:
    scheduler = Scheduler(4)
    other = sequence(1, tokens=tuple(range(50)), cache_prompt=False)
    wanted = sequence(2, tokens=tuple(range(50)))
    running(scheduler, other, wanted)
    assert scheduler.best_running(wanted) == (None, 0)


def test_gaps_are_closed_from_the_top_unless_somebody_is_about_to_fill_them() -> None:
    scheduler = Scheduler(4)
    a, b, c = running(scheduler, sequence(1), sequence(2), sequence(3))
    assert scheduler.gap() is None
    scheduler.remove(a)
    assert scheduler.gap() == (c, 0)
    scheduler.add(sequence(4))
    assert scheduler.gap() is None
    assert b.seat == 1


@given(st.lists(st.integers(0, 3), max_size=12))
def test_those_under_the_same_adapters_come_to_sit_side_by_side(kinds: list[int]) -> None:
    scheduler = Scheduler(12)
    for one, kind in zip(running(scheduler, *(sequence(n) for n in range(len(kinds)))), kinds, strict=True):
        one.phases = (Phase(0, AdapterSet(((kind, 1.0),), b"%d" % kind)),)
    swaps = 0
    while pair := scheduler.apart():
        one, other = pair
        assert one.seat < other.seat
        one.seat, other.seat = other.seat, one.seat
        swaps += 1
    seated = [one.adapters for one in sorted(scheduler.running, key=lambda one: one.seat)]
    assert sum(a != b for a, b in itertools.pairwise(seated)) == max(0, len(set(kinds)) - 1)
    assert swaps < max(1, len(kinds))


def test_a_preempted_request_goes_on_first_with_what_it_produced() -> None:
    scheduler = Scheduler(1)
    (one,) = running(scheduler, sequence(1, 10, done=10, produced=3))
    scheduler.add(sequence(2))
    scheduler.preempt(one)
    assert (one.n_pending, one.n_produced, one.seat, one.decoding) == (13, 3, -1, False)
    assert [s.id for s in scheduler.admit()] == [1]


@given(st.lists(st.integers(0, 1), max_size=30), st.lists(st.integers(0, 1), max_size=30))
def test_common_prefix(a: list[int], b: list[int]) -> None:
    n = common_prefix(a, b)
    assert a[:n] == b[:n]
    assert n == min(len(a), len(b)) or a[n] != b[n]


def test_only_sequences_under_one_key_share() -> None:
    scheduler = Scheduler(4)
    first, second, third = running(scheduler, *(sequence(i, tokens=tuple(range(50))) for i in (1, 2, 3)))
    first.cache_key = third.cache_key = b"adapter"
    assert scheduler.best_running(second) == (None, 0)
    assert scheduler.best_running(third) == (first, 49)
