"""`n_cache_reuse`: cells that move to where another prompt has their tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from puna.engine import sizing
from tests.engine.checking import assert_plausible
from tests.engine.driver import Driver

HEAD = tuple(300 + i % 40 for i in range(30))
OLD = tuple(340 + (7 * i) % 90 for i in range(60))
REST = tuple(430 + (11 * i) % 100 for i in range(80))
NEW = (7, 8, 9)


@pytest.fixture(params=["split", "unified"])
def driver(request: pytest.FixtureRequest, tiny_llama: Path) -> Driver:
    return Driver(tiny_llama, layout=request.param)


def test_a_chat_without_its_oldest_turn_reads_only_what_is_new(driver: Driver) -> None:
    driver.ask(HEAD + OLD + REST, max_tokens=1)
    answer = driver.ask(HEAD + REST + NEW, force="moved", n_cache_reuse=16)
    assert driver.text(answer) == "moved"
    assert (answer.cached, answer.read) == (110, 3)
    assert driver.stats.cache_moved == 80
    assert driver.warnings == []


def test_the_next_turn_goes_on_from_there(driver: Driver) -> None:
    driver.ask(HEAD + OLD + REST, max_tokens=1)
    prompt = HEAD + REST + NEW
    prompt += tuple(driver.ask(prompt, max_tokens=5, n_cache_reuse=16).tokens)
    assert driver.ask(prompt + NEW, max_tokens=1, n_cache_reuse=16).read == 4
    assert driver.ask(HEAD + prompt[-40:] + NEW, max_tokens=1, n_cache_reuse=16).read == 1  # that turn is known too


def test_nobody_else_sees_what_was_moved(driver: Driver) -> None:
    """A request that did not ask for it is answered as if nothing had been moved, while one runs and after it."""
    prompt = HEAD + REST + NEW
    driver.ask(HEAD + OLD + REST, max_tokens=1)
    moved = driver.submit(prompt, max_tokens=40, n_cache_reuse=16)
    driver.run(until=lambda: len(moved.tokens) > 3)
    beside = driver.ask_beside(prompt, max_tokens=8)
    driver.run()
    after = driver.ask(prompt, max_tokens=8)
    assert (beside.cached, after.cached) == (30, 112)
    assert_plausible(driver, prompt, beside)
    assert_plausible(driver, prompt, after)


@pytest.mark.parametrize("wish", [{}, {"n_cache_reuse": 81}, {"n_cache_reuse": 16, "cache_prompt": False}])
def test_only_those_who_ask_and_only_long_runs(driver: Driver, wish: dict[str, object]) -> None:
    driver.ask(HEAD + OLD + REST, max_tokens=1)
    answer = driver.ask(HEAD + REST + NEW, force="fine", **wish)
    assert answer.cached == (0 if "cache_prompt" in wish else 30)
    assert driver.text(answer) == "fine"


def test_a_running_request_is_not_disturbed(driver: Driver) -> None:
    """Not even one that shares cells with what is moved."""
    long = HEAD + OLD + REST
    driver.ask(long, max_tokens=1)
    running = driver.submit(long, max_tokens=30)
    driver.run(until=lambda: len(running.tokens) > 3)
    driver.ask_beside(HEAD + REST + NEW, max_tokens=10, n_cache_reuse=16)
    driver.run()
    assert_plausible(driver, long, running)


def test_memory_that_cannot_be_cut_reads_anew(tiny_mamba: Path) -> None:
    driver = Driver(tiny_mamba)
    driver.ask(HEAD + OLD + REST, max_tokens=1)
    assert driver.ask(HEAD + REST + NEW, force="fine", n_cache_reuse=16).read == 113
    assert driver.warnings == []


def test_a_longer_stored_prompt_than_there_is_room_for(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "SHORT_N_CTX", 128)
    monkeypatch.setattr(sizing, "FIRST_N_CTX", 128)
    driver = Driver(tiny_llama, n_ctx=0)
    driver.ask(HEAD + OLD + REST, max_tokens=1)
    driver.engine._arena.policy.wait = lambda now: 0.0  # type: ignore[method-assign]  # shrinks at once
    driver.engine.tidy()
    assert driver.engine._arena.length == 128
    answer = driver.ask(HEAD + REST[:30] + NEW, force="ok", n_cache_reuse=16)
    assert driver.text(answer) == "ok"
    assert answer.cached == 60
    assert driver.warnings == []
