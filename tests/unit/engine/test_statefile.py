"""Files of saved state: what is written comes back, and nothing else does."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from puna.engine.disk import statefile
from puna.engine.disk.statefile import Identity, StateFileError
from puna.llama.state import State

IDENTITY = Identity("a" * 32, "keys f16, values f16")


def made(n: int = 5000) -> State:
    return np.random.default_rng(n).integers(0, 256, n, np.uint8)


def fault(path: Path, identity: Identity = IDENTITY) -> str:
    with pytest.raises(StateFileError) as caught:
        statefile.read(path, identity)
    return caught.value.fault


def test_what_is_written_comes_back(tmp_path: Path) -> None:
    path, state = tmp_path / "one", made()
    n_bytes = statefile.write(path, IDENTITY, (1, 2**31 - 1, 0), state, b"adapters")
    contents, back = statefile.read(path, IDENTITY)
    assert (contents.tokens, contents.key, contents.n_bytes) == ((1, 2**31 - 1, 0), b"adapters", n_bytes)
    assert n_bytes == path.stat().st_size
    assert np.array_equal(back, state)
    assert statefile.read_contents(path, IDENTITY) == contents
    assert path.stat().st_mode & 0o077 == 0, "prompts are nobody else's business"
    assert [file.name for file in tmp_path.iterdir()] == ["one"]


def test_a_second_write_replaces_the_first(tmp_path: Path) -> None:
    path = tmp_path / "one"
    statefile.write(path, IDENTITY, (1,), made())
    statefile.write(path, IDENTITY, (2,), made(10))
    assert statefile.read(path, IDENTITY)[0].tokens == (2,)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_alteration_is_found(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "one"
    statefile.write(path, IDENTITY, tuple(range(20)), made(90))
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    altered = bytearray(whole)
    altered[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(altered)
    assert fault(path) in {"damaged", "foreign", "version"}


def test_every_truncation_is_found(tmp_path: Path) -> None:
    path = tmp_path / "one"
    statefile.write(path, IDENTITY, tuple(range(20)), made(90))
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert fault(path) == ("foreign" if length < statefile.START.size else "damaged")
    path.write_bytes(whole + b"\0")
    assert fault(path) == "damaged"


def test_parts_of_two_files_do_not_go_together(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    statefile.write(one, IDENTITY, (1, 2, 3), made(300))
    statefile.write(two, IDENTITY, (1, 2, 4), made(301)[:300])
    tail = 300 + statefile.CHECKSUM
    one.write_bytes(one.read_bytes()[:-tail] + two.read_bytes()[-tail:])
    assert fault(one) == "damaged"


def test_another_model_other_settings_and_another_version_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "one"
    statefile.write(path, Identity("b" * 32, IDENTITY.context), (1,), made())
    with pytest.raises(StateFileError, match="another model"):
        statefile.read(path, IDENTITY)
    statefile.write(path, Identity(IDENTITY.model, "keys q8_0, values f16"), (1,), made())
    with pytest.raises(StateFileError, match=r"other settings \(keys q8_0, values f16; here: keys f16, values f16\)"):
        statefile.read(path, IDENTITY)
    whole = bytearray(path.read_bytes())
    whole[8] += 1
    path.write_bytes(whole)
    assert fault(path) == "version"


def test_only_plain_files_are_opened(tmp_path: Path) -> None:
    statefile.write(tmp_path / "real", IDENTITY, (1,), made())
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("hello")
    (tmp_path / "empty").touch()
    faults = [fault(tmp_path / name) for name in ("nothing", "link", "pipe", "folder", "text", "empty")]
    assert faults == ["missing", "missing", "foreign", "foreign", "foreign", "foreign"]


def test_random_heads_are_refused(tmp_path: Path) -> None:
    path, noise = tmp_path / "one", random.Random(1)
    for n_head in (0, 5, 200, 2**32 - 1):
        path.write_bytes(statefile.START.pack(statefile.MAGIC, statefile.VERSION, n_head) + noise.randbytes(250))
        assert fault(path) == "damaged"


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "one"
    statefile.write(path, IDENTITY, (1,), made())

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        statefile.write(path, IDENTITY, (2,), made())
    monkeypatch.undo()
    assert statefile.read(path, IDENTITY)[0].tokens == (1,)
    assert [file.name for file in tmp_path.iterdir()] == ["one"]
