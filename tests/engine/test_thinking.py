"""Thinking that is ended in the engine: by its budget, from outside, under a grammar, and once more after a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from puna.ipc.frames import EndThinking
from puna.types import Constraint, Sampling, Thinking
from tests.engine.driver import Answer, Driver

HOT = Sampling(temperature=1, top_k=0, top_p=1, min_p=0, seed=11)
TAGS = "<t>", "</t>"


@pytest.fixture(scope="module")
def driver(tiny_llama: Path) -> Iterator[Driver]:
    yield Driver(tiny_llama, n_slots=4, cache_ram=0)


def thinking(driver: Driver, budget: int = -1, message: str = "") -> Thinking:
    def ids(text: str) -> tuple[int, ...]:
        return tuple(driver.vocab.tokenize(text, add_special=False, parse_special=False)) if text else ()

    return Thinking(begin=TAGS[0], end=TAGS[1], open=True, budget=budget, close=ids(TAGS[1]), message=ids(message))


def whole(spec: Thinking) -> list[int]:
    return [*spec.message, *spec.close]


def ask(driver: Driver, spec: Thinking | None, **more: Any) -> Answer:
    return driver.submit("x", thinking=spec, **{"sampling": HOT, "max_tokens": 40, **more})


@pytest.mark.parametrize("budget", [0, 1, 7])
@pytest.mark.parametrize("n_probs", [0, 3])
@pytest.mark.parametrize("post", [False, True])
def test_a_budget_ends_thinking_after_so_many_tokens(driver: Driver, budget: int, n_probs: int, post: bool) -> None:
    sampling = Sampling(temperature=1, seed=11, n_probs=n_probs, post_sampling_probs=post, ignore_eos=True)
    spec = thinking(driver, budget, " So.")
    answer = ask(driver, spec, sampling=sampling)
    free = ask(driver, None, sampling=sampling)
    driver.run()
    ending = whole(spec)
    # A character that is not whole is finished first.
    start = next(at for at in range(budget, budget + 5) if answer.tokens[at : at + len(ending)] == ending)
    assert answer.tokens[:start] == free.tokens[:start]
    assert len(answer.probs) == (len(answer.tokens) if n_probs else 0)
    assert [prob.id for prob in answer.probs] == answer.tokens[: len(answer.probs)]


def test_after_a_restart_the_same_comes_at_every_token(driver: Driver) -> None:
    spec = thinking(driver, 5, " So.")
    answer = ask(driver, spec, deterministic=True)
    driver.run()
    for n in range(0, len(answer.tokens), 2):
        resumed = ask(driver, spec, deterministic=True, produced=tuple(answer.tokens[:n]))
        driver.run()
        assert answer.tokens[:n] + resumed.tokens == answer.tokens


def test_it_can_be_ended_from_outside_at_any_time(driver: Driver) -> None:
    sampling = Sampling(temperature=1, seed=11, ignore_eos=True)
    for n in (0, 1, 9):
        spec = thinking(driver)
        answer = ask(driver, spec, sampling=sampling)
        while len(answer.tokens) < n:
            driver.step()
        driver.engine.end_thinking(EndThinking(max(driver.answers)))
        driver.run()
        assert any(answer.tokens[at : at + len(spec.close)] == list(spec.close) for at in range(n, n + 6)), driver.text(answer)
    driver.engine.end_thinking(EndThinking(12345))


def test_a_grammar_is_followed_through_the_end(driver: Driver) -> None:
    grammar = Constraint("lark", 'start: /[a-z ]*/ "</t>" "yes"')
    spec = thinking(driver, 6, "well then")
    answer = ask(driver, spec, constraint=grammar)
    driver.run()
    text = driver.text(answer)
    assert text.endswith("</t>yes") and "well then" in text and answer.end == "eos", text


def test_a_grammar_that_has_no_place_for_the_end_goes_first(driver: Driver) -> None:
    answer = ask(driver, thinking(driver, 2), constraint=Constraint("regex", "[a-z]{30}"))
    driver.run()
    assert driver.text(answer).isalpha() and answer.end == "eos"
