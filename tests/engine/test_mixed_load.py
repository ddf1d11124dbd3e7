"""Random chats under eviction, aborts and growth: nothing of one ever shows in another."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.engine.checking import assert_plausible
from tests.engine.driver import Answer, Driver

SYSTEMS = [tuple(300 + (s * 37 + i) % 150 for i in range(40)) for s in range(3)]
KINDS = [
    ("tiny_llama", "split", "off"),
    ("tiny_llama", "split", "on"),
    ("tiny_llama", "unified", "off"),
    ("tiny_gemma3", "split", "off"),
    ("tiny_gemma3", "unified", "off"),
    ("tiny_mamba", "split", "off"),
    ("tiny_jamba", "split", "off"),
    ("tiny_jamba", "unified", "off"),
]


@pytest.mark.parametrize(("model", "layout", "attention"), KINDS)
def test_random_chats(model: str, layout: str, attention: str, request: pytest.FixtureRequest) -> None:
    """Every token of every answer is one that a fresh evaluation of its own prompt gives, and the books are right all along."""
    path: Path = request.getfixturevalue(model)
    driver = Driver(path, layout=layout, flash_attention=attention, n_slots=3, n_ctx=512)
    host = driver.engine._host
    host.capacity = 60_000 if model == "tiny_llama" else 250_000
    dice = random.Random(7)
    chats: list[tuple[int, ...]] = []
    asked: list[tuple[tuple[int, ...], Answer]] = []
    for _ in range(40):
        if chats and dice.random() < 0.7:
            number = dice.randrange(len(chats))
            prompt = chats.pop(number)[: dice.choice((None, None, -3, 60))]
        else:
            prompt = dice.choice(SYSTEMS)
        prompt = (*prompt, *(300 + dice.randrange(150) for _ in range(dice.randint(1, 30))))
        if len(prompt) > 450:
            continue
        answer = driver.submit(prompt, max_tokens=dice.randint(1, 8), cache_prompt=dice.random() < 0.9)
        asked.append((prompt, answer))
        if dice.random() < 0.1:
            driver.step()
            driver.abort(answer)
        for _ in range(dice.randint(0, 6)):
            driver.step()
            check(driver)
        ended = [(prompt, answer) for prompt, answer in asked if answer.end != "none"]
        chats = [(*prompt, *answer.tokens) for prompt, answer in ended][-8:]
    driver.run()
    check(driver)
    assert driver.warnings == []
    assert driver.stats.cache_hits > 5
    assert host.n_evicted > 0
    for prompt, answer in asked:
        assert_plausible(driver, prompt, answer)


def check(driver: Driver) -> None:
    """Token lists and cells agree, and host memory keeps to its cap."""
    engine = driver.engine
    for sequence in engine._scheduler.running:
        assert engine._memory.length(sequence.seat) == sequence.n_done <= len(sequence.tokens)
    assert engine._host.n_bytes <= engine._host.capacity


@pytest.mark.parametrize("layout", ["split", "unified"])
def test_a_sequence_without_its_cells_is_read_again(tiny_llama: Path, layout: str) -> None:
    """Should cells and tokens ever disagree, that costs time, and nobody's answer."""
    driver = Driver(tiny_llama, layout=layout)
    prompts = [driver.tokens("the one that loses its cells"), driver.tokens("beside it")]
    answers = [driver.submit(prompt, max_tokens=12) for prompt in prompts]
    driver.run(until=lambda: len(answers[0].tokens) > 2)
    driver.engine._memory.drop(driver.engine._scheduler.running[0].seat)
    driver.run()
    for prompt, answer in zip(prompts, answers, strict=True):
        assert len(answer.tokens) > 3
        assert_plausible(driver, prompt, answer)
    assert len(driver.warnings) == 1 and "read again" in driver.warnings[0]
