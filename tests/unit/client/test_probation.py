"""Who is blamed for a death, who goes on trial, and who is given up: tables of what the black box said."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from puna.client.probation import GROUND, Probation
from puna.ipc.blackbox import Moment, Phase

FAULT = True
OUTSIDE = False
PROMPT = 10


class Engine:
    """A worker as the probation sees it: what was submitted runs, and each request has a depth."""

    def __init__(self, n: int) -> None:
        self.probation = Probation()
        self.depth: dict[int, int] = {}
        self.running: list[int] = []
        for id in range(n):
            self.arrive(id)

    def arrive(self, id: int) -> None:
        self.depth[id] = PROMPT
        self.probation.arrived(id)
        self.submit()

    def submit(self) -> list[int]:
        due = self.probation.due()
        self.running += due
        return due

    def step(self, *ids: int, n: int = 1) -> None:
        """These, or all that run, produce a token, `n` times."""
        for _ in range(n):
            for id in ids or tuple(self.running):
                self.depth[id] += 1
                self.probation.produced(id, self.depth[id])
            self.submit()

    def die(self, phase: Phase, ids: Iterable[int], *, fault: bool) -> list[int]:
        """Return the condemned; the next worker gets what is due."""
        condemned = self.probation.died(Moment(phase, tuple(ids), 1), fault=fault)
        self.running = []
        self.submit()
        return condemned


@pytest.mark.parametrize("phase", ["sample", "constrain", "decode"])
def test_named_alone_twice_is_given_up(phase: Phase) -> None:
    engine = Engine(4)
    engine.step()
    if phase == "decode":
        engine.arrive(4)
    assert engine.die(phase, [3 if phase != "decode" else 4], fault=FAULT) == []
    engine.step(n=2)
    assert engine.die(phase, [3 if phase != "decode" else 4], fault=FAULT) == [3 if phase != "decode" else 4]
    assert engine.running == [0, 1, 2] if phase != "decode" else [0, 1, 2, 3]


@pytest.mark.parametrize("phase", ["load", "idle", "unknown"])
def test_nobody_is_blamed_outside_of_work(phase: Phase) -> None:
    engine = Engine(1)
    for _ in range(10):
        assert engine.die(phase, [0], fault=FAULT) == []
    assert engine.running == [0]


def test_unknown_and_ended_requests_are_no_suspects() -> None:
    engine = Engine(2)
    engine.step()
    engine.probation.ended(1)
    for _ in range(5):
        assert engine.die("decode", [1, 77], fault=FAULT) == []


def test_the_new_one_in_a_batch_is_the_prime_suspect() -> None:
    engine = Engine(3)
    engine.step()
    engine.arrive(9)
    assert engine.die("decode", [0, 1, 2, 9], fault=FAULT) == []
    assert engine.running == [0, 1, 2]
    engine.step(0, 1)
    assert engine.running == [0, 1, 2]
    engine.step(2)
    assert engine.running == [0, 1, 2, 9]
    assert engine.probation.on_trial == 9
    assert engine.die("decode", [0, 1, 2, 9], fault=FAULT) == [9]
    assert engine.running == [0, 1, 2]


def test_only_the_new_ones_share_the_blame() -> None:
    engine = Engine(2)
    engine.step()
    engine.arrive(8)
    engine.arrive(9)
    for _ in range(2):
        assert engine.die("decode", [0, 1, 8, 9], fault=FAULT) == []
        engine.step(0, 1)
    # Struck twice together: tried one after the other.
    assert engine.running == [0, 1, 8]
    engine.step()
    assert engine.running == [0, 1, 8, 9]
    assert engine.die("decode", [0, 1, 8, 9], fault=FAULT) == [9]
    assert engine.running == [0, 1, 8]


@pytest.mark.parametrize("killer", range(8))
def test_a_killer_in_a_running_batch_is_found_at_the_third_death(killer: int) -> None:
    engine = Engine(8)
    engine.step(n=5)
    assert engine.die("decode", range(8), fault=FAULT) == []
    assert engine.running == list(range(8))
    assert engine.die("decode", range(8), fault=FAULT) == []
    while killer not in engine.running:
        engine.step()
    assert engine.die("decode", engine.running, fault=FAULT) == [killer]
    # Everyone else is free at once.
    assert engine.running == [id for id in range(8) if id != killer]


def test_a_trial_ends_when_its_request_ends() -> None:
    engine = Engine(2)
    for _ in range(2):
        engine.die("decode", [0, 1], fault=FAULT)
    assert engine.running == [0]
    engine.probation.ended(0)
    assert engine.submit() == [1]


def test_a_trial_goes_on_with_the_next_worker() -> None:
    engine = Engine(3)
    engine.step()
    for _ in range(2):
        engine.die("decode", [0, 1, 2], fault=FAULT)
    assert engine.running == [0]
    assert engine.die("idle", [], fault=OUTSIDE) == []
    assert engine.running == [0]
    assert engine.probation.on_trial == 0


def test_newcomers_wait_while_there_is_a_trial() -> None:
    engine = Engine(2)
    engine.step()
    for _ in range(2):
        engine.die("decode", [0, 1], fault=FAULT)
    engine.arrive(5)
    assert engine.running == [0]
    engine.step(n=GROUND)
    assert engine.running == [0, 1]
    engine.step(n=GROUND)
    assert engine.running == [0, 1, 5]


def test_requests_that_never_ran_come_after_the_trials() -> None:
    engine = Engine(6)
    engine.step(0, 1)
    engine.die("sample", [1], fault=FAULT)
    assert engine.running == [0]
    engine.step(0)
    assert engine.running == [0, 1]
    engine.step(1, n=GROUND)
    assert engine.running == [0, 1, 2, 3, 4, 5]


def test_prefill_is_progress_beyond_what_a_cache_may_hold() -> None:
    engine = Engine(2)
    probation = engine.probation
    assert not probation.read(0, 500)
    assert not probation.read(0, 500)
    assert probation.read(0, 1000)
    # 0 was part of a successful step, 1 was not.
    assert engine.die("decode", [0, 1], fault=FAULT) == []
    assert engine.running == [0]
    probation.read(0, 500)
    probation.read(0, 1000)
    engine.submit()
    assert engine.probation.on_trial == 1
    assert not probation.read(1, 0)
    assert probation.read(1, GROUND)
    assert probation.on_trial is None
    assert not probation.read(77, 5)


@pytest.mark.parametrize("n", [1, 8])
def test_killed_from_outside_while_going_on(n: int) -> None:
    engine = Engine(n)
    for _ in range(20):
        engine.step(n=GROUND + 1)
        assert engine.die("decode", range(n), fault=OUTSIDE) == []
        assert engine.running == list(range(n))


@pytest.mark.parametrize("phase", ["decode", "sample"])
def test_killed_from_outside_twice_without_progress(phase: Phase) -> None:
    engine = Engine(8)
    engine.step()
    engine.arrive(8)
    for _ in range(2):
        assert engine.die(phase, range(9) if phase == "decode" else [8], fault=OUTSIDE) == []
        engine.step()
    engine.step(n=100)
    assert engine.running == list(range(9))


def test_killed_by_exhausted_memory_every_time() -> None:
    engine = Engine(1)
    assert [engine.die("decode", [0], fault=OUTSIDE) for _ in range(3)] == [[], [], [0]]


@pytest.mark.parametrize("fault", [FAULT, OUTSIDE])
@pytest.mark.parametrize("place", ["prefill", "later"])
@pytest.mark.parametrize("n", [1, 2, 8])
def test_no_killer_takes_more_than_three_workers(n: int, place: str, fault: bool) -> None:
    engine = Engine(n)
    killer = n - 1
    limit = PROMPT if place == "prefill" else PROMPT + 4
    deaths = 0
    for _ in range(1000):
        if killer in engine.running and engine.depth[killer] == limit:
            deaths += 1
            condemned = engine.die("decode", engine.running, fault=fault)
            if condemned:
                assert condemned == [killer]
                break
        else:
            engine.step()
    assert 2 <= deaths <= 3
    engine.step()
    assert engine.running == list(range(n - 1))


def test_two_killers_are_both_found() -> None:
    engine = Engine(6)
    engine.step()
    killers = {1, 4}
    deaths = 0
    for _ in range(1000):
        if killers & set(engine.running):
            deaths += 1
            killers -= set(engine.die("decode", engine.running, fault=FAULT))
        else:
            engine.step()
    assert killers == set()
    assert deaths <= 6
    assert engine.running == [0, 2, 3, 5]


def test_excused_deaths_blame_nobody() -> None:
    engine = Engine(1)
    for _ in range(5):
        engine.probation.excused()
        engine.running = []
        assert engine.submit() == [0]
    assert engine.die("decode", [0], fault=FAULT) == []
