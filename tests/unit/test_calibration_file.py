"""What was measured, kept between runs."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from puna import calibration_file
from puna.config import EngineSettings
from puna.tuning import Comparison, Tuning

FOUND = Tuning(
    layout="unified",
    flash_short=True,
    flash_long=True,
    n_threads=4,
    n_threads_batch=8,
    source="measured",
    seconds=1.5,
    comparisons=(Comparison(what="layout", used="split", other="unified", ratio=0.8, n_pairs=2, changed=True),),
)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + bytes(100))
    return path


def key(model: Path, *, engine: str = "e 1.0", cores: int = 4, cpu: str = "c", safe_mode: bool = False, **changed: object) -> str:
    settings = msgspec.convert({"model": str(model), **changed}, EngineSettings)
    return calibration_file.key(settings, engine=engine, cores=cores, cpu=cpu, safe_mode=safe_mode)


def test_the_key_follows_everything_that_changes_times(model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    other.write_bytes(b"GGUF" + bytes(101))
    keys = [
        key(model), key(other), key(model, engine="e 1.1"), key(model, cores=8), key(model, cpu="d"), key(model, safe_mode=True),
        key(model, layout="split"), key(model, n_threads=2), key(model, cache_type_k="q8_0"), key(model, repack=False),
    ]  # fmt: skip
    assert len(set(keys)) == len(keys)


def test_the_key_follows_nothing_else(model: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved.gguf"
    moved.write_bytes(model.read_bytes())
    assert key(model) == key(moved) == key(model, n_ctx=4096) == key(model, cache_ram=0)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    assert calibration_file.read(folder, "k") is None
    calibration_file.write(folder, "k", "/models/m.gguf", FOUND)
    assert calibration_file.read(folder, "k") == FOUND
    assert calibration_file.read(folder, "other") is None
    assert [file.name for file in folder.iterdir()] == ["k.json"]
    assert "m.gguf" in calibration_file.path(folder, "k").read_text()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_file_that_was_cut_short_is_refused(tmp_path: Path, share: float) -> None:
    calibration_file.write(tmp_path, "k", "m", FOUND)
    data = calibration_file.path(tmp_path, "k").read_bytes()
    calibration_file.path(tmp_path, "k").write_bytes(data[: int(len(data) * share)])
    with pytest.raises(ValueError):
        calibration_file.read(tmp_path, "k")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"layout": "unified"', b'"layout": "round"'),
        (b'"n_threads": 4', b'"n_threads": 0'),
        (b'"n_threads": 4', b'"n_threads": "many"'),
        (b'"key": "k"', b'"key": "l"'),
        (b'"flash_long": true', b'"flash": true'),
        (b"{", b"\xff"),
    ],
)
def test_a_file_that_was_altered_is_refused(tmp_path: Path, old: bytes, new: bytes) -> None:
    calibration_file.write(tmp_path, "k", "m", FOUND)
    file = calibration_file.path(tmp_path, "k")
    assert old in file.read_bytes()
    file.write_bytes(file.read_bytes().replace(old, new, 1))
    with pytest.raises(ValueError):
        calibration_file.read(tmp_path, "k")


def test_a_failed_write_leaves_nothing_and_harms_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calibration_file.write(tmp_path, "k", "m", FOUND)

    def full(*_: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        calibration_file.write(tmp_path, "k", "m", msgspec.structs.replace(FOUND, n_threads=1))
    assert [file.name for file in tmp_path.iterdir()] == ["k.json"]
    assert calibration_file.read(tmp_path, "k") == FOUND


def test_where_calibrations_are_kept() -> None:
    assert calibration_file.folder({"HOME": "/h"}) == Path("/h/.cache/puna/calibration")
    assert calibration_file.folder({"HOME": "/h", "XDG_CACHE_HOME": "/c"}) == Path("/c/puna/calibration")
    assert calibration_file.folder({"HOME": "/h", "XDG_CACHE_HOME": "c"}) == Path("/h/.cache/puna/calibration")
    assert calibration_file.folder({}) is None
