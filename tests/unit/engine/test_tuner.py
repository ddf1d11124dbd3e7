"""What is decided by rules, and what is left to be measured."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from puna.config import EngineSettings
from puna.engine.tuner import Situation, rules, to_find

CPU = Situation(can_cut=True, accelerator=False, cores=8, physical_cores=4)
SERIAL = replace(CPU, cores=2, physical_cores=2)


def settings(**changed: object) -> EngineSettings:
    return msgspec.convert({"model": "m", **changed}, EngineSettings)


@pytest.mark.parametrize(
    ("changed", "here", "short", "long"),
    [
        ({}, CPU, True, False),
        ({}, replace(CPU, can_cut=False), False, False),
        ({}, replace(CPU, accelerator=True), True, True),
        ({"cache_type_v": "q8_0"}, CPU, True, True),
        ({"flash_attention": "on"}, CPU, True, True),
        ({"flash_attention": "off"}, replace(CPU, accelerator=True), False, False),
    ],
)
def test_flash_attention_by_rule(changed: dict[str, object], here: Situation, short: bool, long: bool) -> None:
    found = rules(settings(**changed), here)
    assert (found.flash_short, found.flash_long, found.source) == (short, long, "rules")


@pytest.mark.parametrize(
    ("changed", "threads"),
    [
        ({}, (8, 8)),
        ({"n_threads": 3}, (3, 3)),
        ({"n_threads_batch": 3}, (8, 3)),
        ({"n_threads": 2, "n_threads_batch": 5}, (2, 5)),
        ({"n_threads": 99, "n_threads_batch": 99}, (8, 8)),
    ],
)
def test_threads_by_rule(changed: dict[str, object], threads: tuple[int, int]) -> None:
    found = rules(settings(**changed), CPU)
    assert (found.n_threads, found.n_threads_batch) == threads


def test_layout_by_rule() -> None:
    assert [rules(settings(layout=name), CPU).layout for name in ("auto", "split", "unified")] == ["split", "split", "unified"]


def test_everything_that_is_open_is_measured() -> None:
    found = to_find(settings(), CPU)
    assert (found.flash, found.layout, found.short) == (True, True, True)
    assert found.n_threads == found.n_threads_batch == (4, 7)
    assert to_find(settings(), SERIAL).n_threads == ()


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"flash_attention": "on"}, "flash"),
        ({"flash_attention": "off"}, "flash"),
        ({"cache_type_v": "q8_0"}, "flash"),
        ({"layout": "split"}, "layout"),
        ({"layout": "unified"}, "layout"),
        ({"n_slots": 1}, "layout"),
        ({"n_threads": 4}, "n_threads"),
        ({"n_threads": 4}, "n_threads_batch"),
        ({"n_threads_batch": 4}, "n_threads_batch"),
    ],
)
def test_what_the_user_said_is_not_measured(changed: dict[str, object], field: str) -> None:
    before, after = to_find(settings(), CPU), to_find(settings(**changed), CPU)
    assert getattr(before, field)
    assert not getattr(after, field)


def test_with_everything_said_there_is_nothing_to_measure() -> None:
    assert to_find(settings(flash_attention="on", layout="split", n_threads=2), CPU).nothing
    assert to_find(settings(flash_attention="on", n_slots=1), SERIAL).nothing
    assert not to_find(settings(n_threads_batch=2), CPU).nothing
