"""The tier below host memory: prompts in files, written and read beside the engine's thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b

import numpy as np

from puna.engine.disk.folder import SUFFIX, StateFolder
from puna.engine.disk.index import DiskIndex, Record
from puna.engine.disk.jobs import FileThread
from puna.engine.disk.statefile import TOKEN, VERSION, Contents, Identity, StateFileError, file_bytes
from puna.engine.tiers import Offer, Stored
from puna.llama.state import State

FIRST_RATE = 300e6
"""Bytes a second that reading and checking a file is taken to bring, before any was read."""

PAUSE = 60.0
"""Seconds without writing after a write failed."""

VERSION_PREFIX = f"v{VERSION}-"


@dataclass(slots=True)
class DiskCounters:
    """Totals since the worker's start."""

    n_read: int = 0
    n_written: int = 0
    n_evicted: int = 0
    """Files that went to make room."""
    n_bad: int = 0
    """Files that were damaged, and are deleted."""
    n_lost: int = 0
    """Prompts that could not be written, or not as fast as they came."""


class DiskTier:
    """Keeps what it is given in files, and brings it back.

    `store`, `find`, `fetch` and `forget` are the engine's and touch no file. Nothing raises: a folder that fails is said
    once and costs reading, a file that is not right is never used.
    """

    def __init__(
        self,
        folder: StateFolder,
        identity: Identity,
        files: FileThread,
        *,
        can_cut: bool,
        most_pending: int,
        warn: Callable[[str], None],
    ) -> None:
        """At most `most_pending` bytes wait to be written, or one state that is larger."""
        self.counters = DiskCounters()
        self._folder = folder
        self._identity = identity
        self._files = files
        self._most_pending = most_pending
        self._warn = warn
        self._prefix = f"{VERSION_PREFIX}{_hash(identity.model.encode(), identity.context.encode(), size=8)}-"
        self._lock = threading.Lock()
        self._index = DiskIndex(can_cut=can_cut)
        self._pending: dict[str, State] = {}
        self._rate = FIRST_RATE
        self._paused_until = 0.0
        self._failing = False

    def __len__(self) -> int:
        return len(self._index)

    @property
    def n_bytes(self) -> int:
        """What this model's files take."""
        with self._lock:
            return self._index.n_bytes

    @property
    def n_pending(self) -> int:
        """Prompts that wait to be written."""
        return len(self._pending)

    def writable(self, now: float) -> bool:
        """Whether nothing speaks against writing."""
        return now >= self._paused_until

    def knows(self, key: bytes, tokens: tuple[int, ...]) -> bool:
        """Whether these tokens are on disk, or about to be."""
        return self._known(tokens, key)

    # beginning and end

    def start(self, wait: float) -> None:
        """Find out what the folder holds; wait up to `wait` seconds for that, it goes on behind."""
        opened = self._files.do(self._open)
        try:
            opened.result(wait)
        except FutureTimeout:
            self._warn(f"{self._folder.path}: there are many files; what they hold is found out while requests are served")

    def flush(self, entries: Iterable[tuple[bytes, tuple[int, ...], State]], seconds: float) -> int:
        """Write what is not on disk yet, in that order, for so many seconds at most; how many were left out."""
        end = time.monotonic() + seconds
        seen: list[tuple[tuple[int, ...], bytes]] = []
        for key, tokens, state in entries:
            seen.append((tokens, key))
            if time.monotonic() < end and not self._known(tokens, key):
                self._most_pending = max(self._most_pending, state.nbytes)
                self.store(key, tokens, state)
                self._wait(end)
        self._wait(end)  # for what was to be written before, too
        return sum(not self._known(tokens, key, written=True) for tokens, key in seen)

    def _wait(self, end: float) -> None:
        """Until everything that waits is written, or the time is over."""
        try:
            self._files.do(lambda: None).result(max(0.0, end - time.monotonic()))
        except FutureTimeout:
            return

    # the engine's side

    def store(self, key: bytes, tokens: tuple[int, ...], state: State) -> None:
        """Have a whole state written, unless what it holds is there already."""
        name = self._name(tokens, key)
        with self._lock:
            covering = self._index.covers(tokens, key)
            if covering is None:
                full = self._pending and sum(map(len, self._pending.values())) + state.nbytes > self._most_pending
                if full or time.monotonic() < self._paused_until:
                    self.counters.n_lost += 1
                    return
                self._pending[name] = state
                redundant = self._index.add(Record(name, key, file_bytes(self._identity, len(tokens), state.nbytes, key)), tokens)
        if covering is not None:
            self._files.do(partial(self._touch, covering.name))
        else:
            self._files.do(partial(self._write, name, key, tokens, state, redundant))

    def find(self, tokens: Sequence[int], key: bytes) -> Offer | None:
        """How many of the first `tokens` can be had, and how long that takes."""
        with self._lock:
            found = self._index.find(tokens, key)
            return Offer(found[1], found[0].n_bytes / self._rate) if found else None

    def fetch(self, tokens: Sequence[int], key: bytes) -> Future[Stored | None]:
        """Bring what `find` offered; None when it turns out that it cannot be had."""
        with self._lock:
            found = self._index.find(tokens, key)
            state = self._pending.get(found[0].name) if found else None
            waiting = (self._index.tokens(found[0]), state) if found is not None and state is not None else None
        if found is None or waiting is not None:
            ready: Future[Stored | None] = Future()
            ready.set_result(waiting)
            return ready
        return self._files.do(partial(self._read, found[0]), urgent=True)

    def forget(self, tokens: Sequence[int], key: bytes) -> None:
        """Delete this prompt and what is stored of its beginnings."""
        with self._lock:
            records = self._index.within(tokens, key)
        self._delete(records)

    def discard(self, tokens: Sequence[int], key: bytes) -> None:
        """Delete what `find` finds for these tokens."""
        with self._lock:
            found = self._index.find(tokens, key)
        if found is not None:
            self.counters.n_bad += 1
            self._delete([found[0]])

    def _delete(self, records: list[Record]) -> None:
        with self._lock:
            for record in records:
                self._index.remove(record.name)
                self._pending.pop(record.name, None)
        for record in records:
            self._files.do(partial(self._remove, record.name))

    def _known(self, tokens: tuple[int, ...], key: bytes, *, written: bool = False) -> bool:
        """Whether a file holds these tokens; with `written`, it is not only about to."""
        with self._lock:
            record = self._index.covers(tokens, key)
            return record is not None and not (written and record.name in self._pending)

    # the file thread's side

    def _open(self) -> None:
        try:
            self._folder.prepare()
        except OSError as error:
            self._paused_until = float("inf")
            self._warn(f"{self._folder.path} cannot be written to ({error.strerror or error}): no prompts are kept there")
        try:
            listed = self._folder.finished()
        except OSError as error:
            self._warn(f"{self._folder.path} cannot be read ({error.strerror or error})")
            return
        n_foreign = sum(not file.name.startswith(VERSION_PREFIX) for file in listed)
        if n_foreign:
            self._warn(
                f"{self._folder.path}: files of another version ({n_foreign} of {len(listed)}) are not used; "
                "they are deleted when room is needed"
            )
        for file in sorted(listed, key=lambda file: file.used):
            if file.name.startswith(self._prefix):
                self._take_in(file.name)

    def _take_in(self, name: str) -> None:
        try:
            contents = self._folder.read_contents(name, self._identity)
            self._check_name(name, contents)
        except StateFileError as error:
            self._refuse(name, error)
            return
        with self._lock:
            redundant = self._index.add(Record(name, contents.key, contents.n_bytes), contents.tokens)
        for record in redundant:
            self._remove(record.name)

    def _read(self, record: Record) -> Stored | None:
        begin = time.monotonic()
        try:
            contents, state = self._folder.read(record.name, self._identity)
            self._check_name(record.name, contents)
        except StateFileError as error:
            self._refuse(record.name, error)
            return None
        except MemoryError:
            self._warn(f"{self._folder.path / record.name} was not read: there is no memory for it")
            return None
        self.counters.n_read += 1
        self._rate += (contents.n_bytes / max(1e-6, time.monotonic() - begin) - self._rate) / 4
        return contents.tokens, state

    def _write(self, name: str, key: bytes, tokens: tuple[int, ...], state: State, redundant: list[Record]) -> None:
        with self._lock:
            if name not in self._pending:
                return  # it was forgotten meanwhile
        n_bytes = 0
        victims: list[str] = []
        try:
            n_bytes, victims = self._folder.write(name, self._identity, tokens, state, key)
            for record in redundant:
                self._folder.remove(record.name)
        except OSError as error:
            self._paused_until = max(self._paused_until, time.monotonic() + PAUSE)
            if not self._failing:
                self._warn(f"{self._folder.path}: a prompt could not be written: {error.strerror or error}")
        self._failing = n_bytes == 0
        with self._lock:
            forgotten = self._pending.pop(name, None) is None
            for victim in victims:
                self._index.remove(victim)
            if n_bytes == 0:
                self._index.remove(name)
        self.counters.n_evicted += len(victims)
        self.counters.n_written += n_bytes > 0
        self.counters.n_lost += n_bytes == 0
        if forgotten:
            self._remove(name)

    def _touch(self, name: str) -> None:
        try:
            self._folder.touch(name)
        except OSError as error:
            self._warn(f"{self._folder.path / name} cannot be marked as used: {error.strerror or error}")

    def _remove(self, name: str) -> None:
        try:
            self._folder.remove(name)
        except OSError as error:
            self._warn(f"{self._folder.path / name} cannot be deleted: {error.strerror or error}")

    def _refuse(self, name: str, error: StateFileError) -> None:
        """Take a file out of use: delete it if it is damaged, and say so; one that is gone was taken by somebody else."""
        with self._lock:
            self._index.remove(name)
        if error.fault == "damaged":
            self.counters.n_bad += 1
            self._warn(f"{self._folder.path / name} {error}; it is deleted")
            self._remove(name)

    def _check_name(self, name: str, contents: Contents) -> None:
        if name != self._name(contents.tokens, contents.key):
            raise StateFileError("damaged", "does not hold what its name says")

    def _name(self, tokens: tuple[int, ...], key: bytes) -> str:
        return f"{self._prefix}{_hash(key, np.asarray(tokens, TOKEN).tobytes(), size=16)}{SUFFIX}"


def _hash(*parts: bytes, size: int) -> str:
    digest = blake2b(digest_size=size)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()
