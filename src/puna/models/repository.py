"""Which files of a repository are the model that somebody asked for. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from puna.errors import StartupError

PREFERRED = ("Q4_K_M", "Q4_K_S", "Q4_0", "Q5_K_M", "Q6_K", "Q8_0", "F16", "BF16")
"""Number formats to choose when nobody says which, best first."""

_SPEC = re.compile(r"(?P<repo>[\w.-]{1,96}/[\w.-]{1,96})(?::(?P<quant>[\w.-]{1,64}))?")
_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)


@dataclass(frozen=True)
class Wanted:
    """A model in a repository."""

    repo: str
    quant: str = ""
    """The number format, or another part of the file's name; empty for the usual choice."""

    @classmethod
    def parse(cls, text: str) -> Wanted:
        """Read USER/REPO[:QUANT]. Raises `StartupError`."""
        found = _SPEC.fullmatch(text.strip())
        if found is None or ".." in text:
            raise StartupError(f"{text[:120]!r} is no model in a repository; it should look like USER/REPO or USER/REPO:Q4_K_M")
        return cls(found["repo"], found["quant"] or "")


@dataclass(frozen=True)
class RemoteFile:
    """A file of a repository."""

    path: str
    size: int
    """Bytes."""
    sha256: str = ""
    """Empty where the repository does not say."""


@dataclass(frozen=True)
class Chosen:
    """The files to fetch."""

    model: tuple[RemoteFile, ...]
    """The parts of a split model in their order, or its only file."""
    projector: RemoteFile | None = None

    @property
    def files(self) -> tuple[RemoteFile, ...]:
        return (*self.model, self.projector) if self.projector else self.model


def choose(files: Sequence[RemoteFile], wanted: Wanted) -> Chosen:
    """The model that `wanted` means, with the projector beside it if there is one. Raises `StartupError` with what there is."""
    found = [file for file in files if file.path.lower().endswith(".gguf")]
    models = [file for file in found if not _is_projector(file)]
    firsts = [file for file in models if _part(file)[0] <= 1]
    if not firsts:
        raise StartupError(f"{wanted.repo} has no GGUF file; puna serves those only")
    if wanted.quant:
        fitting = [file for file in firsts if _has(file, wanted.quant)]
        if not fitting:
            raise StartupError(f"{wanted.repo} has no file for {wanted.quant!r}; it has: {_listed(firsts)}")
    else:
        fitting = next((some for quant in PREFERRED if (some := [file for file in firsts if _has(file, quant)])), firsts)
    first = min(fitting, key=lambda file: (len(file.path), file.path))
    parts = _parts(first, models, wanted)
    projectors = sorted((file for file in found if _is_projector(file)), key=lambda file: (not _has(file, "F16"), file.path))
    return Chosen(parts, projectors[0] if projectors else None)


def _parts(first: RemoteFile, models: Sequence[RemoteFile], wanted: Wanted) -> tuple[RemoteFile, ...]:
    _, total = _part(first)
    if not total:
        return (first,)
    stem = _PART.sub("", first.path)
    parts = sorted((file for file in models if _PART.sub("", file.path) == stem and _part(file)[1] == total), key=_part)
    if len(parts) != total:
        raise StartupError(f"{wanted.repo} has {len(parts)} of {total} parts of {stem}; the model is not whole there")
    return tuple(parts)


def _part(file: RemoteFile) -> tuple[int, int]:
    """Which part of how many; (0, 0) for a file that is whole."""
    found = _PART.search(file.path)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _has(file: RemoteFile, quant: str) -> bool:
    """Whether the name has that format in it, as a word of its own."""
    return re.search(rf"(?<![a-z0-9]){re.escape(quant.lower())}(?![a-z0-9_])", file.path.lower()) is not None


def _is_projector(file: RemoteFile) -> bool:
    return "mmproj" in file.path.rpartition("/")[2].lower()


def _listed(files: Sequence[RemoteFile], most: int = 20) -> str:
    names = sorted(file.path for file in files)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
