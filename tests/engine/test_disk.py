"""Prompts that fall out of host memory, and come back from disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from puna.engine.disk.idle import PATIENCE
from puna.types import Sampling
from tests.engine.driver import Driver

PROMPTS = [tuple(5 + (i * (k + 3) + k) % 200 for i in range(150)) for k in range(6)]


@pytest.mark.parametrize("kind", ["tiny_llama", "tiny_gemma3", "tiny_mamba"])
@pytest.mark.parametrize("layout", ["split", "unified"])
def test_a_restart_costs_no_reading(kind: str, layout: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    model, settings = request.getfixturevalue(kind), {"cache_dir": str(tmp_path), "layout": layout}
    first = Driver(model, **settings)
    answers = [first.ask(prompt, force="abc") for prompt in PROMPTS[:3]]
    assert first.engine.close(10) == 0
    again = Driver(model, **settings)
    for prompt, answer in zip(PROMPTS, answers, strict=False):
        follow_up = again.ask((*prompt, *answer.tokens, 7, 8, 9), force="fine")
        assert (follow_up.read <= 5, again.text(follow_up)) == (True, "fine")
    assert again.stats.disk_hits == 3
    assert first.warnings == again.warnings == []


@pytest.mark.parametrize("kind", ["tiny_llama", "tiny_gemma3", "tiny_mamba"])
def test_what_comes_back_is_what_went(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """To the last bit: the probabilities after it are those after a state that never left host memory."""
    model = request.getfixturevalue(kind)
    driver = Driver(model, cache_dir=str(tmp_path))
    answer = driver.ask(PROMPTS[0], max_tokens=3, sampling=Sampling(temperature=0, ignore_eos=True))
    driver.engine.close(10)
    again = Driver(model, cache_dir=str(tmp_path))
    question = (*PROMPTS[0], *answer.tokens[:-1], 7, 8)
    probs = [one.ask(question, max_tokens=1, sampling=Sampling(temperature=0, n_probs=20)) for one in (driver, again)]
    assert probs[0].cached == probs[1].cached > 150
    assert probs[0].probs == probs[1].probs
    assert (driver.stats.disk_hits, again.stats.disk_hits) == (0, 1)


def test_what_falls_out_comes_back_and_is_not_written_twice(tiny_llama: Path, tmp_path: Path) -> None:
    driver = Driver(tiny_llama, cache_dir=str(tmp_path), cache_ram=120_000)
    for _ in range(3):
        for prompt in PROMPTS:
            assert driver.text(driver.ask(prompt, force="fine")) == "fine"
    stats = driver.stats
    assert stats.cache_bytes <= 120_000
    assert stats.cache_evictions > 6 and stats.disk_hits >= 6
    assert stats.disk_writes <= 6 + 1
    assert (stats.disk_bad, stats.disk_lost, driver.warnings) == (0, 0, [])


def test_without_host_memory_prompts_rest_on_disk(tiny_llama: Path, tmp_path: Path) -> None:
    driver = Driver(tiny_llama, cache_dir=str(tmp_path), cache_ram=0)
    for _ in range(2):
        for prompt in PROMPTS:
            assert driver.text(driver.ask(prompt, force="fine")) == "fine"
    assert (driver.stats.disk_hits, driver.stats.disk_writes, driver.stats.cache_bytes) == (6, 6, 0)


def test_other_settings_do_not_see_each_other(tiny_llama: Path, tmp_path: Path) -> None:
    plain = Driver(tiny_llama, cache_dir=str(tmp_path))
    plain.ask(PROMPTS[0], max_tokens=1)
    plain.engine.close(10)
    for more in ({"cache_type_k": "bf16"}, {"rope_freq_base": 5000.0}, {"rope_freq_scale": 0.5}):
        assert Driver(tiny_llama, cache_dir=str(tmp_path), **more).ask(PROMPTS[0], max_tokens=1).cached == 0
    for same in ({"layout": "unified"}, {"flash_attention": "on"}, {"n_slots": 2}, {"n_ctx": 1024}):
        assert Driver(tiny_llama, cache_dir=str(tmp_path), **same).ask(PROMPTS[0], max_tokens=1).cached == 149


def test_damage_on_disk_costs_reading_and_no_more(tiny_llama: Path, tmp_path: Path) -> None:
    first = Driver(tiny_llama, cache_dir=str(tmp_path))
    first.ask(PROMPTS[0], max_tokens=1)
    first.engine.close(10)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-50] + bytes(50))
    again = Driver(tiny_llama, cache_dir=str(tmp_path))
    answer = again.ask(PROMPTS[0], force="fine")
    assert (answer.cached, again.text(answer), again.stats.disk_bad) == (0, "fine", 1)
    assert len(again.warnings) == 1 and "is deleted" in again.warnings[0]


def test_an_idle_engine_brings_to_disk_what_rests(tiny_llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("puna.engine.disk.idle.POLL", 0.0)
    driver = Driver(tiny_llama, cache_dir=str(tmp_path))
    writer = driver.engine._idle_writer
    assert driver.engine.tidies_in is None
    for prompt in PROMPTS[:3]:
        driver.ask(prompt, force="fine")
    waits = driver.engine.tidies_in
    assert waits is not None and 0 < waits <= PATIENCE
    driver.engine.tidy()
    assert list(tmp_path.iterdir()) == []
    writer._busy_at -= PATIENCE
    while driver.engine.tidies_in is not None:
        driver.engine.tidy()
        driver.engine._files.wait(1)
    assert len(list(tmp_path.iterdir())) == 3
    again = Driver(tiny_llama, cache_dir=str(tmp_path))  # as after a death of the first one
    assert [again.ask((*prompt, 7), max_tokens=1).read <= 4 for prompt in PROMPTS[:3]] == [True] * 3
    driver.ask((*PROMPTS[0], 9), force="fine")
    writer._busy_at -= PATIENCE
    driver.engine.tidy()
    driver.engine.close(10)
    assert driver.engine.report().stats.disk_writes == 4
    assert len(list(tmp_path.iterdir())) == 3, "the shorter one of the same chat has gone"
    assert driver.warnings == again.warnings == []
