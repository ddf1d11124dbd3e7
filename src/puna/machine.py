"""What this process may use of the machine: cores, memory, CPU features. Standard library only."""

from __future__ import annotations

import math
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path("/")


def usable_cores(root: Path = ROOT) -> int:
    """Cores this process may use: its affinity, cut by the quota of its control group. At least 1."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota(root)
    return max(1, min(cores, math.ceil(quota))) if quota is not None else cores


def physical_cores(root: Path = ROOT) -> int:
    """The same, counting threads of one core once."""
    cores = usable_cores(root)
    if not hasattr(os, "sched_getaffinity"):
        return cores
    folder = root / "sys/devices/system/cpu"
    siblings = {_read(folder / f"cpu{number}/topology/thread_siblings_list") for number in os.sched_getaffinity(0)}
    return cores if None in siblings else max(1, min(cores, len(siblings)))


def cpu_quota(root: Path = ROOT) -> float | None:
    """Cores' worth of time that the control group allows, or None where there is no limit."""
    shares: list[float] = []
    for folder in _groups(root, "cpu"):
        words = (_read(folder / "cpu.max") or "").split()
        if not words:
            words = [_read(folder / "cpu.cfs_quota_us") or "", _read(folder / "cpu.cfs_period_us") or ""]
        if len(words) == 2 and words[0].isdigit() and words[1].isdigit() and int(words[1]) > 0 and int(words[0]) > 0:
            shares.append(int(words[0]) / int(words[1]))
    return min(shares, default=None)


def free_memory(root: Path = ROOT) -> int | None:
    """Bytes this process can still take: what the kernel calls available, cut by the control group. None if unknown."""
    limits = [_free_in_group(folder) for folder in _groups(root, "memory")]
    known = [limit for limit in (_available(root), *limits) if limit is not None]
    return min(known, default=None)


def has_large_pages(root: Path = ROOT) -> bool:
    """Whether the kernel backs a program's own memory with large pages when that is asked for."""
    modes = _read(root / "sys/kernel/mm/transparent_hugepage/enabled") or ""
    return "[madvise]" in modes or "[always]" in modes


def cpu_name(root: Path = ROOT) -> str:
    """The processor's own name, or the architecture's where it has none."""
    found = re.search(r"^model name\s*:\s*(.+)$", _read(root / "proc/cpuinfo") or "", re.MULTILINE)
    if found:
        return found.group(1).strip()
    return _sysctl("machdep.cpu.brand_string") or platform.processor() or platform.machine()


def cpu_features(root: Path = ROOT) -> frozenset[str]:
    """The processor's features under the kernel's names; empty where there is no such list."""
    found = re.search(r"^(?:flags|Features)\s*:\s*(.*)$", _read(root / "proc/cpuinfo") or "", re.MULTILINE)
    return frozenset(found.group(1).split()) if found else frozenset()


def _available(root: Path) -> int | None:
    found = re.search(r"^MemAvailable:\s*(\d+) kB", _read(root / "proc/meminfo") or "", re.MULTILINE)
    if found:
        return int(found.group(1)) * 1024
    total = _sysctl("hw.memsize")
    return int(total) // 2 if total.isdigit() else None


def _free_in_group(folder: Path) -> int | None:
    """Reclaimable file pages count as free: the kernel drops them before it refuses memory."""
    limit = _read(folder / "memory.max") or _read(folder / "memory.limit_in_bytes") or ""
    used = _read(folder / "memory.current") or _read(folder / "memory.usage_in_bytes") or ""
    if not limit.isdigit() or not used.isdigit() or int(limit) >= 1 << 60:
        return None
    cache = re.search(r"^(?:total_)?inactive_file (\d+)$", _read(folder / "memory.stat") or "", re.MULTILINE)
    return max(0, int(limit) - int(used) + (int(cache.group(1)) if cache else 0))


def _groups(root: Path, controller: str) -> list[Path]:
    """The control group folders that bind this process, its own and those above it."""
    base = root / "sys/fs/cgroup"
    folders: list[Path] = []
    for line in (_read(root / "proc/self/cgroup") or "0::/").splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if number == "0" and not names:
            top = base
        elif controller in names.split(","):
            top = base / controller
        else:
            continue
        own = top / path.lstrip("/")
        folders += [folder for folder in (own, *own.parents) if folder == top or top in folder.parents]
    return folders


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def _sysctl(name: str) -> str:
    """A macOS kernel variable; empty elsewhere."""
    if sys.platform != "darwin":
        return ""
    return subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, check=False).stdout.strip()
