"""Saving, restoring and erasing what slots last held."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from puna.engine.adapters import PLAIN
from puna.engine.disk import statefile
from puna.engine.disk.jobs import FileThread
from puna.engine.disk.statefile import Contents, Identity, StateFileError
from puna.engine.pins import Pin
from puna.engine.reuse import PrefixReuse
from puna.engine.sequence import MOVED, Sequence
from puna.engine.slots import SlotBoard, SlotPrompt
from puna.engine.tiers import HostTier
from puna.ipc.frames import SlotDone, SlotJob, Submit
from puna.llama.state import State, StateFormatError
from puna.types import Generation, SlotOutcome

INTERNAL_ID = 1 << 62
"""Ids of the engine's own requests begin here, far beyond those of the server."""


class Refused(Exception):
    """The job cannot be done as it was asked for; the message is for the client."""


@dataclass(slots=True)
class Work:
    """A job that was begun. Its slot is reserved."""

    job: SlotJob
    began: float
    held: SlotPrompt | None = None
    """What is being saved."""
    saving: Future[int] | None = None
    loading: Future[tuple[Contents, State]] | None = None


class SlotJobs:
    """Does slot jobs in order, each once its slot is idle. Files are written and read on another thread.

    A state that does not rest in host memory any more is had from a sequence that reads the slot's prompt once more, as a
    request would, from disk if it is there. So what is saved is what was held, wherever that has gone meanwhile.
    """

    def __init__(
        self,
        board: SlotBoard,
        host: HostTier,
        reuse: PrefixReuse,
        files: FileThread,
        identity: Identity,
        *,
        base: bytes,
    ) -> None:
        """`base` is the namespace of what is computed without adapters."""
        self._board = board
        self._host = host
        self._reuse = reuse
        self._files = files
        self._identity = identity
        self._base = base
        self._queue: deque[SlotJob] = deque()
        self._begun: list[Work] = []
        self._done: list[SlotDone] = []

    def add(self, job: SlotJob) -> None:
        """Queue a job."""
        self._queue.append(job)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do or to tell."""
        return not (self._queue or self._begun or self._done)

    def take_done(self) -> list[SlotDone]:
        """The answers since this was last asked."""
        done, self._done = self._done, []
        return done

    def advance(self, busy: Collection[int], limit: int) -> list[Sequence]:
        """Begin what can begin and end what has been done. `busy` slots are in use; a slot holds `limit` tokens at most.

        Returns sequences whose turn is next: each reads what its slot held.
        """
        for work in list(self._begun):
            self._finish(work, limit)
        wanted: list[Sequence] = []
        for job in list(self._queue):
            if job.slot in busy or job.slot in self._board.reserved:
                continue
            self._queue.remove(job)
            work = Work(job, time.monotonic())
            self._board.reserved.add(job.slot)
            self._begun.append(work)
            try:
                wanted += self._begin(work)
            except Refused as error:
                self._end(work, error=str(error))
        return wanted

    # beginning

    def _begin(self, work: Work) -> list[Sequence]:
        job = work.job
        if job.action == "erase":
            self._erase(work)
        elif job.action == "restore":
            work.loading = self._files.do(partial(statefile.read, Path(job.path), self._identity), urgent=True)
        else:
            return self._begin_saving(work)
        return []

    def _erase(self, work: Work) -> None:
        slot = work.job.slot
        held = self._board.held(slot)
        if held is not None and not self._board.shares(slot, held):
            self._host.forget(held.tokens, held.key)
            if self._reuse.lower is not None:
                self._reuse.lower.forget(held.tokens, held.key)
        self._reuse.pins.drop(slot)
        self._end(work, SlotOutcome(n_tokens=self._board.clear(slot)))

    def _begin_saving(self, work: Work) -> list[Sequence]:
        slot = work.job.slot
        held = work.held = self._board.held(slot)
        if held is None or not held.tokens:
            raise Refused(f"slot {slot} holds no prompt yet")
        if Path(work.job.path).is_symlink():
            raise Refused(f"{Path(work.job.path).name} is a link")
        found = self._host.find((*held.tokens, -1), held.key)
        if found is not None and found.length == len(held.tokens):
            self._save(work, self._host.load(found), held.key)
            return []
        if held.phases is None and held.key.removesuffix(MOVED) != self._base:
            raise Refused(f"slot {slot} holds what was restored from a file and computed with adapters; use the file instead")
        if min(held.tokens) < 0:
            raise Refused(f"slot {slot} holds pictures or sound that do not rest in memory any more; send the prompt again first")
        generation = Generation(prompt=tuple(held.tokens), max_tokens=0)
        sequence = Sequence(Submit(id=INTERNAL_ID + work.job.id, generation=generation), arrived=time.monotonic())
        sequence.internal, sequence.slot = True, slot
        sequence.cache_key, sequence.phases = held.cache_key, held.phases or PLAIN
        return [sequence]

    # going on

    def read(self, sequence: Sequence, state: State | None, error: str = "") -> None:
        """A sequence that `advance` gave has come to its end, with the whole state unless something failed."""
        work = next((one for one in self._begun if INTERNAL_ID + one.job.id == sequence.id), None)
        if work is None:
            return
        if state is None:
            self._end(work, error=error or "what the slot held could not be read again", fault=True)
        else:
            self._save(work, state, sequence.key_at(sequence.n_done))

    def _save(self, work: Work, state: State, key: bytes) -> None:
        assert work.held is not None
        path, tokens = Path(work.job.path), tuple(work.held.tokens)
        work.saving = self._files.do(partial(statefile.write, path, self._identity, tokens, state, key), urgent=True)

    def _finish(self, work: Work, limit: int) -> None:
        name = Path(work.job.path).name
        try:
            if work.saving is not None and work.saving.done():
                n_bytes = work.saving.result()
                self._end(work, SlotOutcome(n_tokens=len(work.held.tokens) if work.held else 0, n_bytes=n_bytes))
            elif work.loading is not None and work.loading.done():
                contents, state = work.loading.result()
                self._restore(work, contents, state, limit)
        except (Refused, StateFileError) as error:
            self._end(work, error=f"{name} {error}")
        except StateFormatError as error:
            self._end(work, error=f"{name} does not hold a state of this model: {error}")
        except (OSError, MemoryError) as error:
            reason = error.strerror if isinstance(error, OSError) else "there is no memory for it"
            self._end(work, error=f"{name} could not be {work.job.action}d: {reason}", fault=True)

    def _restore(self, work: Work, contents: Contents, state: State, limit: int) -> None:
        if len(contents.tokens) > limit:
            raise Refused(f"holds {len(contents.tokens)} tokens; a slot holds at most {limit}")
        slot = work.job.slot
        self._host.put(contents.tokens, state, contents.key)
        self._reuse.pins.drop(slot)
        if not self._host.covers(contents.tokens, contents.key):
            self._reuse.pins.put(slot, Pin(contents.key, contents.tokens, state))
        self._board.leave(slot, SlotPrompt(list(contents.tokens), contents.key, self._base, None))
        self._end(work, SlotOutcome(n_tokens=len(contents.tokens), n_bytes=contents.n_bytes))

    # ending

    def _end(self, work: Work, outcome: SlotOutcome | None = None, *, error: str = "", fault: bool = False) -> None:
        self._begun.remove(work)
        self._board.reserved.discard(work.job.slot)
        outcome = outcome or SlotOutcome()
        self._done.append(
            SlotDone(
                id=work.job.id,
                outcome=msgspec.structs.replace(outcome, ms=1000 * (time.monotonic() - work.began)),
                error=error,
                error_kind="fault" if fault else "invalid",
            )
        )
