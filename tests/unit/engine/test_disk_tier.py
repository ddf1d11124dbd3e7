"""The disk tier alone: what is stored comes back, whatever becomes of the folder meanwhile."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import numpy as np
import pytest

from puna.engine.disk import folder as folders
from puna.engine.disk import statefile
from puna.engine.disk.folder import StateFolder
from puna.engine.disk.jobs import FileThread
from puna.engine.disk.statefile import Identity
from puna.engine.disk.tier import DiskTier
from puna.llama.state import State

IDENTITY = Identity("a" * 32, "keys f16")
LONG = tuple(range(100, 160))
MIB = 1 << 20


def state(seed: int = 0, n: int = 1000) -> State:
    return np.random.default_rng(seed).integers(0, 256, n, np.uint8)


class Cabinet:
    """A tier, its folder, and what it said."""

    def __init__(
        self, path: Path, *, identity: Identity = IDENTITY, can_cut: bool = True, capacity: int = MIB, pending: int = MIB
    ) -> None:
        self.path = path
        self.said: list[str] = []
        self.files = FileThread()
        self.tier = DiskTier(
            StateFolder(path, capacity), identity, self.files, can_cut=can_cut, most_pending=pending, warn=self.said.append
        )
        self.tier.start(10)

    def settle(self) -> None:
        self.files.do(lambda: None).result(10)

    def put(self, tokens: tuple[int, ...], seed: int = 0, key: bytes = b"", n: int = 1000) -> None:
        self.tier.store(key, tokens, state(seed, n))
        self.settle()

    def get(self, tokens: tuple[int, ...], key: bytes = b"") -> tuple[tuple[int, ...], State] | None:
        return self.tier.fetch(tokens, key).result(10)

    @property
    def names(self) -> list[str]:
        return sorted(file.name for file in self.path.iterdir())


def test_what_is_stored_comes_back_after_a_restart(tmp_path: Path) -> None:
    first = Cabinet(tmp_path / "new" / "folder")
    first.put(LONG, 1)
    first.put(LONG, 2, b"adapters")
    again = Cabinet(first.path)
    offer = again.tier.find((*LONG[:40], 1), b"")
    assert offer is not None and (offer.length, offer.seconds > 0) == (40, True)
    for seed, key in ((1, b""), (2, b"adapters")):
        found = again.get(LONG, key)
        assert found is not None and found[0] == LONG and np.array_equal(found[1], state(seed))
    assert again.tier.find(LONG, b"others") is None
    assert again.tier.n_bytes == first.tier.n_bytes == sum(file.stat().st_size for file in first.path.iterdir())
    assert (len(again.tier), again.tier.counters.n_read) == (2, 2)
    assert first.said == again.said == []
    assert first.path.stat().st_mode & 0o077 == 0


def test_what_waits_to_be_written_is_there_at_once(tmp_path: Path) -> None:
    cabinet = Cabinet(tmp_path)
    release = cabinet.files.do(lambda: time.sleep(0.2))
    cabinet.tier.store(b"", LONG, state(3))
    found = cabinet.tier.fetch(LONG, b"").result(0)
    assert not release.done()
    assert found is not None and found[0] == LONG and np.array_equal(found[1], state(3))
    assert cabinet.names == []
    cabinet.settle()
    assert len(cabinet.names) == 1


def test_a_longer_prompt_replaces_its_beginning(tmp_path: Path) -> None:
    cabinet = Cabinet(tmp_path)
    cabinet.put(LONG[:30])
    cabinet.put(LONG)
    cabinet.put(LONG[:20])
    assert (len(cabinet.tier), len(cabinet.names)) == (1, 1)
    whole = Cabinet(tmp_path / "whole", can_cut=False)
    whole.put(LONG[:30])
    whole.put(LONG)
    assert len(whole.names) == 2
    assert whole.get(LONG[:40]) is not None


def test_the_cap_holds_and_the_least_recently_used_goes(tmp_path: Path) -> None:
    cabinet = Cabinet(tmp_path, capacity=20_000)
    for first in (1, 2, 3):
        cabinet.put((first, 5, 6), n=4000)
        os.utime(tmp_path / cabinet.names[-1])
        time.sleep(0.01)
    assert cabinet.get((1, 5, 6)) is not None  # used just now
    for first in (4, 5):
        cabinet.put((first, 5, 6), n=4000)
        assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 20_000
    assert cabinet.tier.find((1, 5, 6), b"") is not None
    assert cabinet.tier.find((2, 5, 6), b"") is None
    assert cabinet.tier.counters.n_evicted == 5 - len(cabinet.tier)
    cabinet.put((9, 9), n=30_000)
    assert cabinet.tier.find((9, 9), b"") is None and cabinet.tier.counters.n_lost == 1


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "swap"])
def test_damaged_files_are_deleted_and_never_used(tmp_path: Path, damage: str) -> None:
    cabinet = Cabinet(tmp_path)
    cabinet.put((1, 2, 3), 1)
    cabinet.put((4, 5, 6), 2)
    one, two = (tmp_path / name for name in cabinet.names)
    whole = one.read_bytes()
    if damage == "swap":
        os.replace(two, one)
    else:
        one.write_bytes({"flip": whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:], "cut": whole[:-1], "empty": b""}[damage])
    found = [cabinet.get(tokens) for tokens in ((1, 2, 3), (4, 5, 6))]
    good = [one for one in found if one is not None]
    assert all(np.array_equal(got, state(1 if tokens == (1, 2, 3) else 2)) for tokens, got in good)
    assert len(good) == (0 if damage == "swap" else 1)
    assert one.exists() == (damage == "empty"), "what is none of ours is left alone"
    if damage != "empty":
        assert len(cabinet.said) == 1 and "is deleted" in cabinet.said[0]
        assert cabinet.tier.counters.n_bad == 1


def test_a_damaged_head_is_found_at_the_start(tmp_path: Path) -> None:
    cabinet = Cabinet(tmp_path)
    cabinet.put((1, 2, 3))
    file = tmp_path / cabinet.names[0]
    whole = bytearray(file.read_bytes())
    whole[30] ^= 1
    file.write_bytes(whole)
    again = Cabinet(tmp_path)
    assert (len(again.tier), again.names, len(again.said)) == (0, [], 1)


def test_other_models_settings_and_versions_are_not_used_and_not_touched(tmp_path: Path) -> None:
    cabinet = Cabinet(tmp_path)
    cabinet.put((1, 2, 3))
    (tmp_path / "v9-0123-4567.state").write_bytes(b"x" * 100)
    (tmp_path / "notes.txt").write_text("mine")
    for other in (Identity("b" * 32, IDENTITY.context), Identity(IDENTITY.model, "keys q8_0")):
        stranger = Cabinet(tmp_path, identity=other)
        assert stranger.tier.find((1, 2, 3), b"") is None
        assert len(stranger.said) == 1 and "of another version (1 of 2)" in stranger.said[0]
    assert len(cabinet.names) == 3
    stranger = Cabinet(tmp_path, identity=Identity("b" * 32, IDENTITY.context), capacity=2300)
    (before,) = (name for name in stranger.names if name.startswith("v1-"))
    stranger.put((7, 8), n=2000)
    assert (tmp_path / "notes.txt").exists()
    assert len(stranger.names) == 3 and before not in stranger.names, "the cap holds for all state files together"


def test_a_name_that_lies_is_found_out(tmp_path: Path) -> None:
    cabinet = Cabinet(tmp_path)
    cabinet.put((1, 2, 3))
    (name,) = cabinet.names
    (tmp_path / name).rename(tmp_path / (name[:-10] + "0000.state"))
    assert Cabinet(tmp_path).tier.find((1, 2, 3), b"") is None


def test_links_are_not_followed(tmp_path: Path) -> None:
    cabinet = Cabinet(tmp_path / "cache")
    cabinet.put((1, 2, 3))
    (name,) = cabinet.names
    (tmp_path / "cache" / name).rename(tmp_path / "elsewhere")
    (tmp_path / "cache" / name).symlink_to(tmp_path / "elsewhere")
    assert cabinet.get((1, 2, 3)) is None
    cabinet.tier.forget((1, 2, 3), b"")
    cabinet.settle()
    assert (tmp_path / "elsewhere").exists()


def test_two_servers_share_a_folder(tmp_path: Path) -> None:
    one, two = Cabinet(tmp_path, capacity=12_000), Cabinet(tmp_path, capacity=12_000)
    one.put((1, 2, 3), 1)
    two.put((1, 2, 3), 1)
    assert len(one.names) == 1
    for seed in range(20):
        (one if seed % 2 else two).put((seed, 7, 7), seed, n=3000)
        assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 12_000
    for cabinet in (one, two):
        for seed in range(20):
            found = cabinet.get((seed, 7, 7))
            assert found is None or np.array_equal(found[1], state(seed, 3000))
        assert cabinet.said == [], "a file that the other one took is no fault"


def test_a_full_disk_is_said_once_and_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cabinet = Cabinet(tmp_path)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    cabinet.put((1, 2, 3))
    cabinet.put((4, 5, 6))
    assert (cabinet.names, len(cabinet.tier), cabinet.tier.counters.n_lost) == ([], 0, 2)
    assert len(cabinet.said) == 1 and "No space left on device" in cabinet.said[0]
    monkeypatch.undo()
    monkeypatch.setattr(cabinet.tier, "_paused_until", 0.0)
    cabinet.put((4, 5, 6))
    assert len(cabinet.names) == 1


def test_the_last_of_a_disk_is_left_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cabinet = Cabinet(tmp_path)
    cabinet.put((1, 2, 3))
    monkeypatch.setattr(folders, "RESERVE", 1 << 62)
    cabinet.put((4, 5, 6))
    assert (len(cabinet.names), cabinet.tier.counters.n_lost) == (1, 1)


def test_a_folder_that_cannot_be_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cabinet = Cabinet(tmp_path / "file" / "folder")
    cabinet.put((1, 2, 3))
    assert cabinet.get((1, 2, 3)) is None
    assert [line for line in cabinet.said if "cannot be written to" in line] == cabinet.said[:1]
    assert cabinet.tier.flush([(b"", (1, 2), state())], 1) == 1


def test_a_folder_that_goes_away_costs_reading_only(tmp_path: Path) -> None:
    cabinet = Cabinet(tmp_path / "cache")
    cabinet.put((1, 2, 3))
    for file in cabinet.path.iterdir():
        file.unlink()
    cabinet.path.rmdir()
    assert cabinet.get((1, 2, 3)) is None
    cabinet.put((4, 5, 6))
    assert cabinet.get((4, 5, 6)) is None
    assert len(cabinet.said) == 1


def test_what_a_dead_writer_left_is_cleared_away_in_time(tmp_path: Path) -> None:
    old, young = tmp_path / ".puna-0011.tmp", tmp_path / ".puna-2233.tmp"
    for file in (old, young):
        file.write_bytes(b"half a state")
    os.utime(old, (0, 0))
    cabinet = Cabinet(tmp_path)
    assert cabinet.names == [young.name]
    assert len(cabinet.tier) == 0


def test_no_more_waits_than_may(tmp_path: Path) -> None:
    cabinet = Cabinet(tmp_path, pending=2500)
    release = cabinet.files.do(lambda: time.sleep(0.2))
    for first in range(4):
        cabinet.tier.store(b"", (first, 1), state(first))
    assert not release.done()
    assert cabinet.tier.counters.n_lost == 2
    cabinet.settle()
    assert len(cabinet.names) == 2
    cabinet.put((9, 9), n=5000)
    assert len(cabinet.names) == 3, "one state may always wait"


def test_flushing_keeps_to_its_time_and_order(tmp_path: Path) -> None:
    cabinet = Cabinet(tmp_path, pending=1)
    entries = [(b"", (first, 1), state(first)) for first in range(5)]
    assert cabinet.tier.flush(entries, 10) == 0
    assert len(cabinet.names) == 5
    assert cabinet.tier.flush(entries, 0) == 0, "they are there already"
    late = Cabinet(tmp_path / "late")
    assert late.tier.flush(iter(entries), 0) == 5
    assert late.names == []


def test_forgetting_takes_beginnings_along(tmp_path: Path) -> None:
    cabinet = Cabinet(tmp_path, can_cut=False)
    for tokens in (LONG[:10], LONG[:20], LONG, (1, 2)):
        cabinet.put(tokens)
    cabinet.tier.forget(LONG[:20], b"")
    cabinet.settle()
    assert len(cabinet.names) == 2
    assert cabinet.tier.find(LONG[:30], b"") is None and cabinet.tier.find(LONG, b"") is not None
    release = cabinet.files.do(lambda: time.sleep(0.1))
    cabinet.tier.store(b"", (5, 5, 5), state())
    cabinet.tier.forget((5, 5, 5), b"")
    assert not release.done()
    cabinet.settle()
    assert len(cabinet.names) == 2, "what was forgotten before it was written is not written"


def test_what_the_engine_refuses_is_discarded(tmp_path: Path) -> None:
    cabinet = Cabinet(tmp_path)
    cabinet.put(LONG)
    cabinet.tier.discard(LONG[:20], b"")
    cabinet.settle()
    assert (cabinet.names, cabinet.tier.counters.n_bad) == ([], 1)


def test_a_write_that_is_cut_short_leaves_no_file_under_its_name(tmp_path: Path) -> None:
    """As `kill -9` in the middle of a write: what there is has a temporary name, and is no part of the folder's files."""
    pid = os.fork()
    if pid == 0:
        os.fsync = lambda _descriptor: os._exit(9)  # type: ignore[assignment]  # the process ends with the bytes written
        statefile.write(tmp_path / "whole.state", IDENTITY, LONG, state(n=100_000))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".puna-")
    assert len(Cabinet(tmp_path).tier) == 0
