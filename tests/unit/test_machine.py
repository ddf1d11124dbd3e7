from __future__ import annotations

import os
from pathlib import Path

import pytest

from puna import machine


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({"sys/fs/cgroup/cpu.max": "max 100000"}, None),
        ({"sys/fs/cgroup/cpu.max": "150000 100000"}, 1.5),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/cpu.max": "50000 100000",
                "sys/fs/cgroup/a/b/cpu.max": "max 100000",
            },
            0.5,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/a\n2:memory:/\n",
                "sys/fs/cgroup/cpu/a/cpu.cfs_quota_us": "200000",
                "sys/fs/cgroup/cpu/a/cpu.cfs_period_us": "100000",
            },
            2.0,
        ),
        ({"proc/self/cgroup": "4:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1"}, None),
        ({"sys/fs/cgroup/cpu.max": "100000 0"}, None),
    ],
)
def test_the_quota_of_the_control_group(tmp_path: Path, files: dict[str, str], quota: float | None) -> None:
    assert machine.cpu_quota(write(tmp_path, files)) == quota


def test_cores_are_cut_by_the_quota_but_never_to_none(tmp_path: Path) -> None:
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert machine.usable_cores(tmp_path) == allowed
    assert machine.usable_cores(write(tmp_path, {"sys/fs/cgroup/cpu.max": "1000 100000"})) == 1


def test_free_memory_is_what_the_tightest_limit_leaves(tmp_path: Path) -> None:
    write(tmp_path, {"proc/meminfo": "MemTotal: 9 kB\nMemAvailable:    1000 kB\n"})
    assert machine.free_memory(tmp_path) == 1024000
    write(tmp_path, {"sys/fs/cgroup/memory.max": "max", "sys/fs/cgroup/memory.current": "5"})
    assert machine.free_memory(tmp_path) == 1024000
    group = {"sys/fs/cgroup/memory.max": "1000", "sys/fs/cgroup/memory.current": "900"}
    write(tmp_path, {**group, "sys/fs/cgroup/memory.stat": "anon 600\ninactive_file 300\n"})
    assert machine.free_memory(tmp_path) == 400


def test_an_unlimited_old_group_is_no_limit(tmp_path: Path) -> None:
    files = {
        "proc/meminfo": "MemAvailable: 1 kB\n",
        "proc/self/cgroup": "2:memory:/x\n",
        "sys/fs/cgroup/memory/x/memory.limit_in_bytes": str(2**63 - 4096),
        "sys/fs/cgroup/memory/x/memory.usage_in_bytes": "1",
    }
    assert machine.free_memory(write(tmp_path, files)) == 1024


def test_name_and_features(tmp_path: Path) -> None:
    write(tmp_path, {"proc/cpuinfo": "processor : 0\nmodel name\t: Some CPU\nflags\t\t: sse avx2 amx_tile\n"})
    assert machine.cpu_name(tmp_path) == "Some CPU"
    assert machine.cpu_features(tmp_path) == {"sse", "avx2", "amx_tile"}
    assert machine.cpu_features(tmp_path / "none") == frozenset()


def test_threads_of_one_core_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 2, 3}, raising=False)
    assert machine.physical_cores(tmp_path) == 4
    siblings = {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}
    write(tmp_path, {f"sys/devices/system/cpu/cpu{n}/topology/thread_siblings_list": text for n, text in siblings.items()})
    assert (machine.usable_cores(tmp_path), machine.physical_cores(tmp_path)) == (4, 2)
    write(tmp_path, {"sys/fs/cgroup/cpu.max": "100000 100000"})
    assert machine.physical_cores(tmp_path) == 1


@pytest.mark.parametrize(
    ("modes", "large"),
    [("always [madvise] never", True), ("[always] madvise never", True), ("always madvise [never]", False), (None, False)],
)
def test_large_pages(tmp_path: Path, modes: str | None, large: bool) -> None:
    if modes is not None:
        write(tmp_path, {"sys/kernel/mm/transparent_hugepage/enabled": modes})
    assert machine.has_large_pages(tmp_path) is large
