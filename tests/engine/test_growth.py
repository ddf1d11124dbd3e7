"""The context grows when a sequence needs more room and shrinks when none does, and nobody loses anything by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from puna.engine import shrinking, sizing
from puna.errors import StartupError
from puna.types import Sampling
from tests.engine.driver import Driver

LONG = Sampling(temperature=0, ignore_eos=True)
SLOW = Sampling(temperature=0, n_probs=1)
"""One token a step, even where a grammar forces many."""


@pytest.fixture(params=["split", "unified"])
def driver(request: pytest.FixtureRequest, tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> Driver:
    monkeypatch.setattr(sizing, "FIRST_N_CTX", 256)
    monkeypatch.setattr(sizing, "SHORT_N_CTX", 256)
    return Driver(tiny_llama, n_ctx=0, layout=request.param)


def test_a_long_prompt_makes_room_while_others_run(driver: Driver) -> None:
    arena = driver.engine._arena
    assert arena.length == 256
    others = [driver.submit(f"{i}", force="other text " * 6) for i in range(3)]
    driver.run(until=lambda: all(answer.tokens for answer in others))
    prompt = tuple(5 + i % 200 for i in range(1000))
    answer = driver.submit(prompt, force="after growing")
    driver.run()
    assert arena.length == 1024
    assert driver.text(answer) == "after growing"
    assert [driver.text(other) for other in others] == ["other text " * 6] * 3
    assert driver.ask((*prompt, 9), force="again").read <= 2


def test_an_answer_grows_to_the_end_of_the_context(driver: Driver) -> None:
    answer = driver.ask("go", sampling=LONG)
    assert len(answer.tokens) + len(driver.tokens("go")) == driver.facts.n_ctx == 2048
    assert answer.end == "limit"


def test_fewer_seats_send_the_youngest_back_to_the_queue(driver: Driver) -> None:
    size = driver.engine._arena._size
    driver.engine._arena._size = sizing.Size(size.n_ctx, size.n_slots, size.first, size.cell, 2 * 512 * size.cell)
    kept = driver.ask(tuple(7 + i % 100 for i in range(100)), max_tokens=1)
    others = [driver.submit(f"{i}", max_tokens=60, sampling=LONG) for i in range(3)]
    driver.run(until=lambda: all(len(other.tokens) > 5 for other in others))
    answer = driver.submit(tuple(5 + i % 200 for i in range(400)), force="long")
    driver.run()
    assert driver.text(answer) == "long"
    assert driver.engine._scheduler.n_seats == 2
    assert [len(other.tokens) for other in others] == [60] * 3
    assert [driver.ask(f"{i}", max_tokens=60, sampling=LONG).tokens for i in range(3)] == [other.tokens for other in others]
    assert driver.ask((*(7 + i % 100 for i in range(100)), *kept.tokens, 9), max_tokens=1).cached == 100
    assert driver.warnings == []


def test_memory_that_cannot_be_cut_keeps_its_seats(tiny_gemma3: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "FIRST_N_CTX", 256)
    driver = Driver(tiny_gemma3, n_ctx=0, n_slots=0, layout="split")
    other = driver.submit("0", max_tokens=60, sampling=LONG)
    driver.run(until=lambda: len(other.tokens) > 5)
    answer = driver.submit(tuple(5 + i % 200 for i in range(400)), force="long")
    driver.run()
    assert (driver.text(answer), len(other.tokens)) == ("long", 60)
    assert driver.engine._arena.length >= 400
    assert driver.warnings == []


def test_without_memory_only_the_long_request_fails(driver: Driver) -> None:
    make = driver.engine._arena._make

    def refuse(length: int, seats: int) -> object:
        if length > 256:
            raise StartupError("no memory")
        return make(length, seats)

    driver.engine._arena._make = refuse  # type: ignore[assignment]  # returns a context or raises
    other = driver.submit("0", force="other text " * 6)
    driver.run(until=lambda: bool(other.tokens))
    answer = driver.submit(tuple(5 + i % 200 for i in range(400)))
    driver.run()
    assert answer.end == "error"
    assert "memory" in answer.error
    assert driver.text(other) == "other text " * 6
    assert driver.ask("1", force="fine").end == "eos"
    assert len(driver.warnings) == 1


def test_states_move_between_attention_kinds_with_all_they_hold(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was kept with flash attention serves without it."""
    monkeypatch.setattr(sizing, "SHORT_N_CTX", 256)
    monkeypatch.setattr(sizing, "FIRST_N_CTX", 1024)
    prompt = tuple(5 + (7 * i) % 300 for i in range(200))
    plain = Driver(tiny_llama, n_ctx=0, flash_attention="off").ask(prompt, max_tokens=30, sampling=LONG)
    driver = Driver(tiny_llama, n_ctx=0, flash_attention="auto")
    assert driver.engine._arena.length == 256
    driver.ask(prompt, max_tokens=1)
    driver.ask(tuple(9 + i % 90 for i in range(400)), max_tokens=1)
    assert driver.engine._arena.length == 1024
    after = driver.ask(prompt, max_tokens=30, sampling=LONG)
    assert after.read == 1
    assert after.tokens == plain.tokens
    assert driver.warnings == []


@pytest.fixture
def patience(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> shrinking.ShrinkPolicy:
    """A policy that waits for an hour unless it is told not to."""
    monkeypatch.setattr(shrinking, "SHARE", 0.0)
    driver.engine._arena.policy = policy = shrinking.ShrinkPolicy(3600.0)
    return policy


def test_it_shrinks_under_running_streams(driver: Driver, patience: shrinking.ShrinkPolicy) -> None:
    engine = driver.engine
    prompt = tuple(5 + i % 200 for i in range(1000))
    driver.ask(prompt, max_tokens=1)
    others = [driver.submit(f"{i}", force="other text " * 6, max_tokens=100, sampling=SLOW) for i in range(3)]
    driver.run(until=lambda: all(len(answer.tokens) > 5 for answer in others))
    assert (engine._arena.length, engine.tidies_in is None) == (1024, False)
    patience._patience = 0.0
    driver.run()
    assert (engine._arena.length, engine.tidies_in) == (256, None)
    assert [driver.text(other) for other in others] == ["other text " * 6] * 3
    after = driver.ask((*prompt, 9), max_tokens=1)
    assert (after.cached, engine._arena.length) == (1000, 1024)
    assert driver.warnings == []


def test_a_short_request_uses_the_beginning_of_what_a_long_one_left(driver: Driver, patience: shrinking.ShrinkPolicy) -> None:
    prompt = tuple(5 + i % 200 for i in range(1200))
    driver.ask(prompt, max_tokens=1)
    patience._patience = 0.0
    driver.engine.tidy()
    patience._patience = 3600.0
    short = (*prompt[:100], 9)
    answer = driver.ask(short, max_tokens=30, sampling=LONG)
    assert (driver.engine._arena.length, answer.cached) == (256, 100)
    assert answer.tokens == driver.ask(short, max_tokens=30, sampling=LONG, cache_prompt=False).tokens
    assert driver.ask((*prompt, 9), max_tokens=1).cached == 1200
    assert driver.warnings == []


def test_it_stays_while_something_is_expected_to_need_it(driver: Driver, patience: shrinking.ShrinkPolicy) -> None:
    patience._patience = 0.0
    driver.ask(tuple(5 + i % 200 for i in range(1000)), max_tokens=1)
    writer = driver.submit("0", max_tokens=900, sampling=LONG)
    lengths = set()
    for _ in range(50):
        driver.step()
        lengths.add(driver.engine._arena.length)
    assert lengths == {1024}
    driver.abort(writer)
    driver.engine.tidy()
    assert driver.engine._arena.length == 256


def test_seats_come_back(driver: Driver, patience: shrinking.ShrinkPolicy) -> None:
    arena, scheduler = driver.engine._arena, driver.engine._scheduler
    arena._size = sizing.Size(arena._size.n_ctx, 4, 256, arena._size.cell, 2 * 512 * arena._size.cell)
    driver.ask(tuple(5 + i % 200 for i in range(400)), max_tokens=1)
    assert scheduler.n_seats == 2
    patience._patience = 0.0
    driver.ask("0", max_tokens=1)
    assert scheduler.n_seats == 4


def test_a_smaller_context_that_cannot_be_made_changes_nothing(driver: Driver, patience: shrinking.ShrinkPolicy) -> None:
    arena = driver.engine._arena
    driver.ask(tuple(5 + i % 200 for i in range(400)), max_tokens=1)
    make = arena._make

    def refuse(length: int, seats: int) -> object:
        if length == 256:
            raise StartupError("no memory")
        return make(length, seats)

    arena._make = refuse  # type: ignore[assignment]  # returns a context or raises
    other = driver.submit("0", force="other text " * 6, max_tokens=100, sampling=SLOW)
    driver.run(until=lambda: len(other.tokens) > 5)
    patience._patience = 0.0
    driver.step()
    patience._patience = 3600.0
    driver.run()
    assert driver.text(other) == "other text " * 6
    assert arena.length == arena.limit // 4 == 512
    assert len(driver.warnings) == 1
    assert driver.ask(tuple(5 + i % 200 for i in range(1000)), max_tokens=1).end == "limit"


def test_a_reproducible_request_is_computed_in_one_way_at_any_time(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "SHORT_N_CTX", 256)
    monkeypatch.setattr(sizing, "FIRST_N_CTX", 1024)
    prompt = tuple(5 + (7 * i) % 300 for i in range(200))
    driver = Driver(tiny_llama, n_ctx=0)
    before = driver.ask(prompt, max_tokens=40, sampling=LONG, deterministic=True)
    assert driver.engine._arena.length == 1024
    assert driver.ask(prompt, max_tokens=40, sampling=LONG, deterministic=True).tokens == before.tokens
    assert Driver(tiny_llama, n_ctx=0, flash_attention="off").ask(
        prompt, max_tokens=40, sampling=LONG, deterministic=True
    ).tokens == before.tokens  # fmt: skip


def test_seats_follow_the_number_of_requests(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "FIRST_N_CTX", 256)
    monkeypatch.setattr(sizing, "SHORT_N_CTX", 256)
    monkeypatch.setattr(shrinking, "SHARE", 0.0)
    driver = Driver(tiny_llama, n_ctx=0, n_slots=12)
    arena, scheduler = driver.engine._arena, driver.engine._scheduler
    arena.policy = policy = shrinking.ShrinkPolicy(3600.0)
    prompt = tuple(5 + i % 200 for i in range(400))
    assert (arena.length, arena.seats) == (256, 12)
    first = driver.submit(prompt, force="long text " * 6, max_tokens=100, sampling=SLOW)
    driver.run(until=lambda: bool(first.tokens))
    assert (arena.length, arena.seats, scheduler.n_seats) == (512, 4, 4)
    others = [driver.submit(f"{i}", force="other text " * 6, max_tokens=100, sampling=SLOW) for i in range(10)]
    driver.run(until=lambda: all(other.tokens for other in others))
    assert (arena.length, arena.seats, len(scheduler.running)) == (512, 12, 11)
    driver.run()
    assert driver.text(first) == "long text " * 6
    assert {driver.text(other) for other in others} == {"other text " * 6}
    policy._patience = 0.0
    assert driver.ask((*prompt, 9), max_tokens=2).cached == 400
    assert (arena.length, arena.seats) == (512, 4)
    driver.engine.tidy()
    assert (arena.length, arena.seats, scheduler.n_seats) == (256, 12, 12)
    assert driver.warnings == []


def test_without_memory_for_more_seats_requests_wait(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "FEW_SEATS", 1)
    arena = driver.engine._arena
    make = arena._make

    def refuse(length: int, seats: int) -> object:
        if length * seats > 512:
            raise StartupError("no memory")
        return make(length, seats)

    first = driver.submit(tuple(5 + i % 200 for i in range(400)), force="long text " * 6, max_tokens=100, sampling=SLOW)
    driver.run(until=lambda: bool(first.tokens))
    assert (arena.length, arena.seats) == (512, 1)
    arena._make = refuse  # type: ignore[assignment]  # returns a context or raises
    others = [driver.submit(f"{i}", force="other text", max_tokens=100) for i in range(3)]
    driver.run()
    assert driver.text(first) == "long text " * 6
    assert {driver.text(other) for other in others} == {"other text"}
    assert len(driver.warnings) == 1
