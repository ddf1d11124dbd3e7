"""Files that requests may name: those in one folder and the folders in it, nothing that leads out of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

from puna.mediafiles.refusal import Refusal

_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def read_file(folder: str, path: str, most: int) -> bytes:
    """The bytes of a file below `folder`, named from there or in full. Raises `Refusal`.

    Every part of the path is opened from the one before and may be no link, so that what was checked is what is read,
    whatever changes in between.
    """
    if not folder:
        raise Refusal("files of the server's machine cannot be read; its --media-path names a folder for that")
    parts = _parts(folder, path)
    try:
        opened = os.open(Path(folder).expanduser(), os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        try:
            for part in parts:
                inner = os.open(part, _OPEN, dir_fd=opened)
                os.close(opened)
                opened = inner
            return _read(opened, most)
        finally:
            os.close(opened)
    except (OSError, ValueError) as error:
        # the reason is not told: it would say what there is on this machine
        raise Refusal("there is no such file in the folder of --media-path, or it cannot be read") from error


def _parts(folder: str, path: str) -> tuple[str, ...]:
    wanted = PurePosixPath(path)
    if wanted.is_absolute():
        for root in (Path(folder).expanduser().absolute(), Path(folder).expanduser().resolve()):
            if wanted.is_relative_to(root):
                wanted = wanted.relative_to(root)
                break
        else:
            raise Refusal("only files in the folder of --media-path can be read")
    parts = wanted.parts
    if not parts or ".." in parts or any("\0" in part or "\\" in part for part in parts):
        raise Refusal("only files in the folder of --media-path can be read")
    return parts


def _read(opened: int, most: int) -> bytes:
    found = os.fstat(opened)
    if not stat.S_ISREG(found.st_mode):
        raise Refusal("there is no such file in the folder of --media-path, or it cannot be read")
    if found.st_size > most:
        raise Refusal(f"the file has {found.st_size} bytes; up to {most} can be read")
    with os.fdopen(os.dup(opened), "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise Refusal(f"the file has over {most} bytes")
    return data
