"""Models whose memory cannot be cut: a chat's next turn, and the same prompt again, read only what is new."""

from __future__ import annotations

from pathlib import Path

import pytest

from puna.engine.checkpoints import BEFORE_END
from tests.engine.driver import Driver

SYSTEM = tuple(300 + i % 150 for i in range(120))


KINDS = [(model, layout) for model in ("tiny_gemma3", "tiny_rwkv7", "tiny_jamba") for layout in ("split", "unified")]
OTHERS = [("tiny_mamba", "unified"), ("tiny_rwkv6", "split"), ("tiny_granite_hybrid", "split"), ("tiny_lfm2", "unified")]


def make(request: pytest.FixtureRequest, model: str, layout: str) -> Driver:
    path: Path = request.getfixturevalue(model)
    return Driver(path, layout=layout, n_ctx=1024)


@pytest.fixture(params=KINDS)
def driver(request: pytest.FixtureRequest) -> Driver:
    return make(request, *request.param)


def turn(number: int) -> tuple[int, ...]:
    return tuple(200 + (number * 31 + i) % 90 for i in range(20))


@pytest.mark.parametrize(("model", "layout"), KINDS + OTHERS)
def test_a_chat_reads_only_what_is_new(model: str, layout: str, request: pytest.FixtureRequest) -> None:
    driver = make(request, model, layout)
    prompt = SYSTEM
    for number in range(4):
        prompt = (*prompt, *turn(number))
        answer = driver.ask(prompt, max_tokens=8)
        assert answer.read <= (len(prompt) if number == 0 else 21)
        plain = driver.ask(prompt, max_tokens=8, cache_prompt=False)
        assert plain.read == len(prompt)
        assert answer.tokens == plain.tokens
        prompt = (*prompt, *answer.tokens)
    assert driver.warnings == []


def test_the_same_prompt_again_reads_a_few_tokens(driver: Driver) -> None:
    first = driver.ask(SYSTEM, max_tokens=20)
    again = driver.ask(SYSTEM, max_tokens=20)
    assert (first.read, again.read) == (120, BEFORE_END)
    assert again.tokens == first.tokens


def test_an_answer_that_comes_back_altered_costs_the_answer_only(driver: Driver) -> None:
    answer = driver.ask(SYSTEM, max_tokens=20)
    altered = (*SYSTEM, *answer.tokens[:3], 7, 8, 9)
    assert driver.ask(altered, max_tokens=2).read == BEFORE_END + 6


def test_the_third_with_one_beginning_reads_only_its_own(driver: Driver) -> None:
    """The second shows where prompts part."""
    read = [driver.ask((*SYSTEM, *turn(number)), max_tokens=2).read for number in (1, 4, 7)]
    assert read == [140, 140, 20]


def test_all_that_wait_for_one_beginning_leave_it_behind(driver: Driver) -> None:
    answers = [driver.submit((*SYSTEM, *turn(number)), max_tokens=2) for number in (1, 4, 7)]
    driver.run()
    assert [answer.read for answer in answers] == [140, 20, 20]
    assert driver.ask((*SYSTEM, *turn(2)), max_tokens=2).read == 20


def test_long_prompts_have_checkpoints_inside(tiny_mamba: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("puna.engine.checkpoints.EVERY", 100)
    monkeypatch.setattr("puna.engine.checkpoints.APART", 20)
    driver = Driver(tiny_mamba, n_ctx=1024)
    prompt = tuple(300 + (7 * i) % 150 for i in range(450))
    driver.ask(prompt, max_tokens=1)
    assert driver.ask((*prompt[:250], 7, 8, 9), max_tokens=1).read == 53


def test_without_host_memory_nothing_is_kept_and_no_step_is_split(tiny_mamba: Path) -> None:
    driver = Driver(tiny_mamba, cache_ram=0)
    before = driver.stats.n_decode
    answer = driver.ask(SYSTEM[:60], max_tokens=1)
    assert (answer.read, driver.stats.n_decode - before, driver.stats.cache_entries) == (60, 1, 0)
