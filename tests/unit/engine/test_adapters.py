"""Which adapters apply where, which sequences may share what, and who takes turns. Without a model."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puna.engine.adapters import NO_ADAPTERS, PLAIN, Adapter, Adapters, AdapterSet, Phase, agreement, last_occurrence, without
from puna.engine.scheduler import TURN, Scheduler
from puna.engine.sequence import Sequence
from puna.errors import InvalidRequest
from puna.ipc.frames import Submit
from puna.types import Generation

ADAPTERS = Adapters((Adapter(b"a" * 16), Adapter(b"b" * 16), Adapter(b"c" * 16, (7, 8)), Adapter(b"d" * 16, (9,))))
PROMPT = (1, 7, 8, 2, 9, 7, 8, 3)


def sequence(
    id: int, lora: object = (), prompt: tuple[int, ...] = tuple(range(10, 40)), *, done: int = 0, **more: object
) -> Sequence:
    made = Sequence(Submit(id=id, generation=Generation(prompt=prompt, lora=lora, **more)), 0.0)  # type: ignore[arg-type]  # passed on
    made.phases = ADAPTERS.phases(made.generation.lora, prompt)
    made.n_done = done
    return made


def decoding(id: int, lora: object = (), **more: object) -> Sequence:
    made = sequence(id, lora, **more)  # type: ignore[arg-type]  # passed on
    made.tokens.append(5)
    made.n_done, made.n_fresh = len(made.tokens) - 1, 1
    return made


def running(*sequences: Sequence) -> Scheduler:
    scheduler = Scheduler(len(sequences))
    for one in sequences:
        scheduler.add(one)
    assert len(list(scheduler.admit())) == len(sequences)
    return scheduler


def scales(phases: tuple[Phase, ...]) -> list[tuple[int, tuple[tuple[int, float], ...]]]:
    return [(phase.start, phase.adapters.scales) for phase in phases]


@pytest.mark.parametrize(
    "lora, expected",
    [
        ((), [(0, ())]),
        (((1, 2.0), (0, 1.0)), [(0, ((0, 1.0), (1, 2.0)))]),
        (((0, 0.0),), [(0, ())]),
        (((0, 1e-50),), [(0, ())]),
        (((2, 1.0),), [(0, ()), (5, ((2, 1.0),))]),
        (((3, 1.0),), [(0, ()), (4, ((3, 1.0),))]),
        (((0, 0.5), (2, 1.0), (3, -1.0)), [(0, ((0, 0.5),)), (4, ((0, 0.5), (3, -1.0))), (5, ((0, 0.5), (2, 1.0), (3, -1.0)))]),
    ],
)
def test_phases(lora: tuple[tuple[int, float], ...], expected: object) -> None:
    assert scales(ADAPTERS.phases(lora, PROMPT)) == expected


def test_an_invocation_that_begins_the_prompt_or_is_not_there() -> None:
    assert scales(ADAPTERS.phases([(2, 1.0)], (7, 8, 1))) == [(0, ((2, 1.0),))]
    assert ADAPTERS.phases([(2, 1.0)], (7, 1, 8)) == PLAIN
    assert ADAPTERS.phases([(2, 1.0)], (8,)) == PLAIN


@pytest.mark.parametrize("id", [-1, 4])
def test_an_adapter_that_is_not_loaded(id: int) -> None:
    with pytest.raises(InvalidRequest, match="there is no adapter"):
        ADAPTERS.phases([(id, 1.0)], PROMPT)


@given(st.lists(st.integers(0, 2), max_size=12), st.lists(st.integers(0, 2), min_size=1, max_size=3))
def test_the_last_occurrence(whole: list[int], part: list[int]) -> None:
    starts = [at for at in range(len(whole)) if whole[at : at + len(part)] == part]
    assert last_occurrence(part, whole) == (starts[-1] if starts else -1)


def test_marks_name_files_and_scales() -> None:
    """A set is known by what the files hold, not by the numbers they have in this process."""
    other = Adapters((Adapter(b"b" * 16), Adapter(b"a" * 16)))
    assert ADAPTERS.phases([(0, 1.0)], ())[0].adapters.mark == other.phases([(1, 1.0)], ())[0].adapters.mark
    marks = {
        ADAPTERS.phases(lora, PROMPT)[0].adapters.mark for lora in ([], [(0, 1.0)], [(0, 0.5)], [(1, 1.0)], [(0, 1.0), (1, 1.0)])
    }
    assert len(marks) == 5


# keys and sharing


def test_a_key_holds_what_applied_up_to_a_length() -> None:
    plain, active, weaker = (sequence(1, lora, PROMPT) for lora in ((), ((2, 1.0),), ((2, 0.5),)))
    for length in range(1, 6):
        assert plain.key_at(length) == active.key_at(length) == weaker.key_at(length) == b""
    for length in range(6, 9):
        assert len({plain.key_at(length), active.key_at(length), weaker.key_at(length)}) == 3
    active.cache_key = b"base"
    assert active.key_at(1) == b"base"
    assert active.key_at(8).startswith(b"base")
    always = sequence(2, ((0, 1.0),), PROMPT)
    assert always.key_at(1) == always.key_at(8) != b""


def test_equal_tokens_are_shared_under_equal_adapters() -> None:
    plain, active, weaker, always = (
        sequence(n, lora, PROMPT) for n, lora in enumerate(((), ((2, 1.0),), ((2, 0.5),), ((0, 1.0),)))
    )
    assert active.prefix_shared_with(sequence(9, ((2, 1.0),), PROMPT)) == 8
    assert plain.prefix_shared_with(active) == active.prefix_shared_with(plain) == 5
    assert active.prefix_shared_with(weaker) == 5
    assert always.prefix_shared_with(active) == always.prefix_shared_with(plain) == 0


def test_where_phases_stop_agreeing() -> None:
    one, two = AdapterSet(((0, 1.0),), b"1"), AdapterSet(((1, 1.0),), b"2")
    assert agreement(PLAIN, PLAIN) is None
    assert agreement((*PLAIN, Phase(3, one)), (*PLAIN, Phase(5, one))) == 3
    assert agreement((*PLAIN, Phase(3, one), Phase(7, two)), (*PLAIN, Phase(3, one))) == 7
    assert agreement((Phase(0, one),), (Phase(0, two),)) == 0


def test_best_running_respects_the_set() -> None:
    leader, same, other = sequence(1, ((0, 1.0),), done=30), sequence(2, ((0, 1.0),)), sequence(3, ((0, 0.5),))
    scheduler = running(leader, same, other)
    assert scheduler.best_running(same) == (leader, 29)
    assert scheduler.best_running(other) == (None, 0)


@given(st.integers(0, 10), st.integers(1, 10), st.lists(st.integers(1, 20), max_size=3, unique=True))
def test_phases_after_tokens_were_taken_out(start: int, count: int, starts: list[int]) -> None:
    """Every token that stays keeps its adapters."""
    sets = [AdapterSet(((n, 1.0),), b"%d" % n) for n in range(4)]
    phases = (Phase(0, NO_ADAPTERS), *(Phase(at, sets[n]) for n, at in enumerate(sorted(starts))))

    def at(phases: tuple[Phase, ...], position: int) -> AdapterSet:
        return next(phase.adapters for phase in reversed(phases) if phase.start <= position)

    before = [at(phases, position) for position in range(30)]
    del before[start : start + count]
    after = without(phases, start, count)
    assert [at(after, position) for position in range(len(before))] == before


# turns


def test_a_step_is_of_one_set() -> None:
    scheduler = running(*(decoding(n, lora) for n, lora in enumerate((((0, 1.0),), (), ((0, 1.0),), ((1, 1.0),)))))
    plans = [scheduler.plan(64, 2048) for _ in range(6 * TURN)]
    turns = [[0, 2]] * TURN + [[1]] * TURN + [[3]] * TURN
    assert [[piece.sequence.id for piece in plan.pieces] for plan in plans] == turns * 2
    assert [plan.adapters.scales for plan in plans[::TURN]][:3] == [((0, 1.0),), (), ((1, 1.0),)]


def test_a_turn_ends_with_a_step_that_reads() -> None:
    """Such a step is long: others must not wait for several of them."""
    reads, streams = sequence(1, ((0, 1.0),), tuple(range(1000))), decoding(2)
    scheduler = running(reads, streams)
    seen = []
    for _ in range(2 * (1 + TURN)):
        plan = scheduler.plan(50, 2048)
        seen.append(plan.pieces[0].sequence.id)
        for piece in plan.pieces:
            if piece.sequence is reads:
                reads.n_done += piece.count
    assert seen == [1, *[2] * TURN] * 2


def test_turns_under_the_same_adapters_are_single_steps() -> None:
    scheduler = running(decoding(1), decoding(2, deterministic=True))
    assert [scheduler.plan(64, 2048).pieces[0].sequence.id for _ in range(4)] == [1, 2, 1, 2]


def test_a_prompt_is_read_up_to_where_other_adapters_apply() -> None:
    one = sequence(1, ((2, 1.0),), PROMPT)
    scheduler = running(one)
    first = scheduler.plan(64, 2048)
    assert [(piece.count, piece.reaches_end) for piece in first.pieces] == [(5, False)]
    assert first.adapters == NO_ADAPTERS
    assert not one.enters_phase
    one.n_done = 5
    assert one.enters_phase
    second = scheduler.plan(64, 2048)
    assert [(piece.count, piece.reaches_end) for piece in second.pieces] == [(3, True)]
    assert second.adapters.scales == ((2, 1.0),)


def test_deterministic_requests_stop_there_too() -> None:
    scheduler = running(sequence(1, ((2, 1.0),), PROMPT, deterministic=True))
    assert scheduler.plan(64, 2048).pieces[0].count == 5


def test_groups_that_read_share_the_budget() -> None:
    sets = (((0, 1.0),), ((1, 1.0),))
    scheduler = running(*(sequence(n, sets[n % 2], tuple(range(500))) for n in range(4)), decoding(9))
    plans = [scheduler.plan(100, 2048) for _ in range(2 + TURN)]
    assert sorted(plan.n_prefill for plan in plans) == [0] * TURN + [50, 50]


def test_followers_make_no_group() -> None:
    leader, follower = sequence(1), sequence(2, ((0, 1.0),))
    follower.leader, follower.leader_goal = leader, 20
    scheduler = running(leader, follower)
    for _ in range(3):
        assert [piece.sequence.id for piece in scheduler.plan(64, 2048).pieces] == [1]


@given(st.lists(st.tuples(st.sampled_from([(), ((0, 1.0),), ((1, 1.0),), ((1, 2.0),)]), st.booleans()), min_size=1, max_size=8))
def test_everybody_gets_a_turn_in_every_round(requests: list[tuple[object, bool]]) -> None:
    made = [decoding(n, lora, deterministic=alone) for n, (lora, alone) in enumerate(requests)]
    scheduler = running(*made)
    n_groups = len({one.id if one.generation.deterministic else one.adapters for one in made})
    steps = TURN if len({one.adapters for one in made}) > 1 else 1
    turns = Counter(piece.sequence.id for _ in range(2 * n_groups * steps) for piece in scheduler.plan(64, 2048).pieces)
    assert turns == {one.id: 2 * steps for one in made}


def test_a_flood_of_new_sets_starves_nobody() -> None:
    """One request of an old set beside a seat that gets a request of a new set after every step."""
    old = decoding(0)
    scheduler = Scheduler(2)
    scheduler.add(old)
    list(scheduler.admit())
    served = 0
    for n in range(1, 21):
        guest = decoding(n, ((0, float(n)),))
        scheduler.add(guest)
        list(scheduler.admit())
        ids = [piece.sequence.id for piece in scheduler.plan(64, 2048).pieces]
        served += ids == [0]
        scheduler.remove(guest)
    assert served >= 10
