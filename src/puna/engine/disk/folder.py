"""A folder of state files that several servers may share: its files are the only book that is kept.

Any server may remove any file at any time, so a file that is gone is no surprise. The cap holds for all files together,
those of other models and other versions included; what is not named as ours is never touched.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

from puna.engine.disk import statefile
from puna.engine.disk.index import Listed, choose_victims
from puna.engine.disk.statefile import Contents, Identity
from puna.llama.state import State

SUFFIX = ".state"
RESERVE = 256 << 20
"""Bytes of the disk that are left to others."""

STALE = 600.0
"""Seconds after which a file that is still being written belongs to nobody who lives."""


class StateFolder:
    """The files of one folder. Every method may raise `OSError`."""

    def __init__(self, path: Path, capacity: int) -> None:
        """`capacity` in bytes."""
        self.path = path
        self.capacity = capacity

    def prepare(self) -> None:
        """Make the folder if there is none, see that it can be written to, and clear away what a dead writer left."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = self.path / "".join((statefile.TEMPORARY[0], str(os.getpid()), statefile.TEMPORARY[1]))
        probe.write_bytes(b"")
        probe.unlink()
        before = time.time() - STALE
        for file in self._files():
            if file.name.startswith(statefile.TEMPORARY[0]) and file.used < before:
                self.remove(file.name)

    def finished(self) -> list[Listed]:
        """The state files, finished ones only."""
        return [file for file in self._files() if not file.name.startswith(statefile.TEMPORARY[0])]

    def read_contents(self, name: str, identity: Identity) -> Contents:
        """What a file holds beside its state. Raises `StateFileError`."""
        return statefile.read_contents(self.path / name, identity)

    def read(self, name: str, identity: Identity) -> tuple[Contents, State]:
        """A file's contents and state, and mark it as used. Raises `StateFileError`."""
        found = statefile.read(self.path / name, identity)
        with contextlib.suppress(OSError):  # a folder that is only to be read serves as well
            self.touch(name)
        return found

    def write(self, name: str, identity: Identity, tokens: tuple[int, ...], state: State, key: bytes) -> tuple[int, list[str]]:
        """Write a file after making room for it; its length, 0 when there is no room, and the names of files that went."""
        needed = statefile.file_bytes(identity, len(tokens), state.nbytes, key)
        free = shutil.disk_usage(self.path).free - RESERVE
        victims = choose_victims(self._files(), needed, capacity=self.capacity, free=free)
        if victims is None:
            return 0, []
        for victim in victims:
            self.remove(victim)
        return statefile.write(self.path / name, identity, tokens, state, key), victims

    def touch(self, name: str) -> None:
        """Mark as used now."""
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.path / name)

    def remove(self, name: str) -> None:
        """Delete a file, if it is still there."""
        with contextlib.suppress(FileNotFoundError):
            (self.path / name).unlink()

    def _files(self) -> list[Listed]:
        """Everything that is ours, unfinished files included: they take room too."""
        files = []
        with os.scandir(self.path) as entries:
            for entry in entries:
                temporary = entry.name.startswith(statefile.TEMPORARY[0]) and entry.name.endswith(statefile.TEMPORARY[1])
                if not (temporary or entry.name.endswith(SUFFIX)):
                    continue
                with contextlib.suppress(FileNotFoundError):
                    found = entry.stat(follow_symlinks=False)
                    files.append(Listed(entry.name, found.st_size, found.st_mtime))
        return files
