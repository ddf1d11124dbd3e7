"""`puna models`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from puna.cli.model import embedded
from puna.config import EngineSettings
from puna.errors import StartupError
from puna.gguf import read_header
from puna.machine import free_memory
from puna.models.estimate import needed_bytes

USAGE = """usage: puna models [DIR ...]

Lists the models in folders, those that were pulled, and the embedded one: name, size, number format, and whether they fit
in the memory that is free now.
"""


def run(arguments: Sequence[str]) -> int:
    """Print a line for each model."""
    if any(word in {"-h", "--help"} for word in arguments):
        print(USAGE)
        return 0
    lines = [describe(path, origin, free_memory()) for path, origin in _found(arguments)]
    if not lines:
        print("no models; `puna pull USER/REPO` fetches one")
        return 0
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    return 0


def describe(path: str, origin: str, free: int | None) -> tuple[str, str, str, str, str]:
    """Name, size, format, whether it fits, and where it is. What cannot be read says why."""
    try:
        header = read_header(path)
    except StartupError as error:
        return Path(path).stem, "-", "-", f"cannot be used: {error.message}"[:100], origin
    needed = needed_bytes(header, EngineSettings(model=path))
    if header.missing_bytes:
        fits = f"{header.missing_bytes >> 20} MiB of it are missing"
    elif free is None:
        fits = f"takes {needed >> 20} MiB"
    else:
        fits = "fits" if needed <= free else f"needs {needed >> 20} MiB, {free >> 20} are free"
    return Path(path).stem, f"{header.file_bytes >> 20} MiB", header.quantisation, fits, origin


def _found(folders: Sequence[str]) -> list[tuple[str, str]]:
    from puna.models.downloads import kept_models

    found: list[tuple[str, str]] = []
    for folder in folders:
        if not Path(folder).is_dir():
            raise StartupError(f"there is no folder {folder}")
        found += ((str(path), str(path)) for path in sorted(Path(folder).rglob("*.gguf")))
    found += ((path, repo) for repo, path, _ in kept_models())
    if embedded():
        found.append((embedded(), "embedded"))
    return found
