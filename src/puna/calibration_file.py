"""What was measured to suit a model on this machine, kept between runs.

One file a key in the user's cache folder. A key covers everything that the measurement depends on, so a file is never
out of date; it may only be damaged, and then it is as if it were not there.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from puna import machine
from puna.config import EngineSettings
from puna.tuning import Tuning

VERSION = 1
"""Changes with what is measured and how it is weighed."""

HEADER_BYTES = 1 << 20
"""Beginning of a model file that tells models apart: their shapes and types decide the times, not their weights' values."""

DEPENDS_ON = (
    "n_ubatch", "n_threads", "n_threads_batch", "n_gpu_layers", "flash_attention", "layout", "cache_type_k", "cache_type_v",
    "repack", "threads_poll",
)  # fmt: skip
"""The settings that change times, or what there is to choose."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """What a file holds."""

    key: str
    model: str
    """The model's file name, for people who look."""
    tuning: Tuning


def key(settings: EngineSettings, *, engine: str, cores: int, cpu: str, safe_mode: bool) -> str:
    """Name the measurement of a model under these settings, with this engine on this machine.

    Raises OSError when the model cannot be read.
    """
    path = Path(settings.model)
    with path.open("rb") as file:
        model = hashlib.sha256(file.read(HEADER_BYTES)).hexdigest()
    chosen = {name: getattr(settings, name) for name in DEPENDS_ON}
    parts = (VERSION, model, path.stat().st_size, chosen, engine, cores, cpu, safe_mode)
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:32]


def key_here(settings: EngineSettings, engine: str, *, safe_mode: bool = False) -> str:
    """The same for the machine this process runs on."""
    return key(settings, engine=engine, cores=machine.usable_cores(), cpu=machine.cpu_name(), safe_mode=safe_mode)


def folder(environment: Mapping[str, str]) -> Path | None:
    """Where calibrations are kept; None for a user without a home."""
    base = environment.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the specification tells to ignore relative paths
        home = environment.get("HOME", "")
        if not os.path.isabs(home):
            return None
        base = os.path.join(home, ".cache")
    return Path(base) / "puna" / "calibration"


def path(folder: Path, key: str) -> Path:
    return folder / f"{key}.json"


def read(folder: Path, key: str) -> Tuning | None:
    """What is kept under a key, None if there is nothing.

    Raises OSError, or ValueError with the reason, for a file that cannot be used.
    """
    try:
        data = path(folder, key).read_bytes()
    except FileNotFoundError:
        return None
    entry = msgspec.json.decode(data, type=Entry)  # raises msgspec.DecodeError, a ValueError
    if entry.key != key:
        raise ValueError(f"it belongs to another key, {entry.key[:40]!r}")
    if entry.tuning.n_threads < 1 or entry.tuning.n_threads_batch < 1:
        raise ValueError("it asks for no threads")
    return entry.tuning


def write(folder: Path, key: str, model: str, tuning: Tuning) -> None:
    """Keep a tuning: whole or not at all. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    data = msgspec.json.format(msgspec.json.encode(Entry(key=key, model=os.path.basename(model), tuning=tuning)))
    handle, name = tempfile.mkstemp(dir=folder, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(name, path(folder, key))
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
