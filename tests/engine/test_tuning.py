"""Ways of computing are measured on a real model, once, and what was found is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from puna.engine import trials, tuner
from puna.engine.calibration import Costs, Way
from puna.engine.trials import Trials
from puna.errors import StartupError
from puna.llama.context import Context
from puna.tuning import Tuning
from puna.types import ModelFacts
from tests.engine.driver import Driver


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(trials, "DEEP", 200)
    monkeypatch.setattr(tuner, "SECONDS", 60.0)
    monkeypatch.setattr(trials, "CALM", 0.0)
    return tmp_path / "puna" / "calibration"


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Way]:
    """The ways that were measured; unified streams and no flash attention are made to look best."""
    ways: list[Way] = []
    measure = Trials.measure

    def watch(self: Trials, way: Way) -> Costs | None:
        ways.append(way)
        costs = measure(self, way)
        seconds = (0.01 if way.layout == "unified" else 0.02) * (2 if way.flash else 1)
        return costs and Costs(seconds, seconds, seconds)

    monkeypatch.setattr(Trials, "measure", watch)
    return ways


def tuning(facts: ModelFacts) -> Tuning:
    assert facts.tuning is not None
    return facts.tuning


@pytest.mark.parametrize("model", ["tiny_llama", "tiny_gemma3", "tiny_mamba"])
def test_every_kind_of_memory_is_measured(model: str, request: pytest.FixtureRequest, cache: Path, measured: list[Way]) -> None:
    path: Path = request.getfixturevalue(model)
    driver = Driver(path, n_ctx=0, calibrate=True)
    found = tuning(driver.facts)
    assert (found.source, found.layout, found.flash_short, found.flash_long) == ("measured", "unified", False, False)
    assert {(way.layout, way.flash) for way in measured} >= {("split", False), ("split", True), ("unified", False)}
    assert (driver.facts.layout, driver.facts.flash_attention) == ("unified", False)
    assert len(driver.ask("hello", max_tokens=5).tokens) > 0
    assert driver.warnings == []

    measured.clear()
    again = Driver(path, n_ctx=0, calibrate=True)
    assert (tuning(again.facts).source, tuning(again.facts).layout) == ("stored", "unified")
    assert measured == []


def test_a_damaged_file_is_measured_anew(tiny_llama: Path, cache: Path, measured: list[Way]) -> None:
    Driver(tiny_llama, calibrate=True)
    (file,) = cache.iterdir()
    file.write_bytes(file.read_bytes()[:-20])
    driver = Driver(tiny_llama, calibrate=True)
    assert tuning(driver.facts).source == "measured"
    assert len(driver.warnings) == 1
    assert str(file) in driver.warnings[0]
    assert tuning(Driver(tiny_llama, calibrate=True).facts).source == "stored"


def test_an_unwritable_folder_is_no_reason_not_to_start(tiny_llama: Path, cache: Path, measured: list[Way]) -> None:
    cache.parent.mkdir()
    cache.write_text("a file where the folder should be")
    driver = Driver(tiny_llama, calibrate=True)
    assert tuning(driver.facts).layout == "unified"
    assert len(driver.warnings) == 2


@pytest.mark.parametrize("changed", [{"calibrate": False}, {"flash_attention": "off", "layout": "split"}])
def test_what_is_not_wanted_is_not_measured(
    tiny_llama: Path, cache: Path, measured: list[Way], changed: dict[str, object]
) -> None:
    driver = Driver(tiny_llama, **{"calibrate": True, **changed})
    assert tuning(driver.facts).source == "rules"
    assert measured == []
    assert not cache.exists()


def test_without_time_the_rules_hold_and_nothing_is_kept(
    tiny_llama: Path, cache: Path, measured: list[Way], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuner, "SECONDS", 0.0)
    found = tuning(Driver(tiny_llama, calibrate=True).facts)
    assert (found.layout, found.flash_short, found.flash_long, found.comparisons) == ("split", True, False, ())
    assert not cache.exists()


def test_a_busy_machine_is_not_measured(
    tiny_llama: Path, cache: Path, measured: list[Way], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trials, "CALM", 1e9)
    found = tuning(Driver(tiny_llama, calibrate=True).facts)
    assert (found.layout, found.comparisons, found.complete) == ("split", (), False)
    assert not cache.exists()


def test_the_next_start_goes_on_where_time_was_up(
    tiny_llama: Path, cache: Path, measured: list[Way], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Trials, "_is_time_for", lambda _self, _rounds: len(measured) <= 8)
        first = Driver(tiny_llama, calibrate=True)
    found = tuning(first.facts)
    assert (found.layout, found.complete, len(found.comparisons)) == ("unified", False, 2)
    n = len(measured)
    found = tuning(Driver(tiny_llama, calibrate=True).facts)
    assert (found.layout, found.source, found.complete, len(found.comparisons)) == ("unified", "measured", True, 3)
    assert {(way.layout, way.deep) for way in measured[n:]} == {("unified", False)}
    assert tuning(Driver(tiny_llama, calibrate=True).facts).source == "stored"


def test_a_way_that_cannot_be_had_is_left_out(tiny_llama: Path, measured: list[Way], monkeypatch: pytest.MonkeyPatch) -> None:
    prepare = Trials._prepare

    def refuse(self: Trials, way: Way) -> object:
        if way.layout == "unified":
            raise StartupError("no memory")
        return prepare(self, way)

    monkeypatch.setattr(Trials, "_prepare", refuse)
    driver = Driver(tiny_llama, calibrate=True)
    assert driver.facts.layout == "split"
    found = tuning(driver.facts)
    assert [made.what for made in found.comparisons] == [f"flash attention in {kind} contexts" for kind in ("long", "short")]
    assert not found.complete
    assert len(driver.warnings) == 1


def test_no_context_is_left_behind(tiny_llama: Path, measured: list[Way], monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Context] = []
    init = Context.__init__

    def count(self: Context, *args: object, **named: object) -> None:
        opened.append(self)
        init(self, *args, **named)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(Context, "__init__", count)
    Driver(tiny_llama, calibrate=True)
    assert len(opened) > 4
    assert [context._p is None for context in opened] == [True] * (len(opened) - 1) + [False]
