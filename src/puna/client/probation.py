"""Who killed the worker: pure bookkeeping over requests, steps and deaths.

A death strikes its suspects, the requests that the black box names. The list is narrowed where it can be: to the
request on trial; else to those that had not yet been part of a successful step when others had. A sole suspect goes on
trial: the others run again first, then it is added, and no other unproven request until it got `GROUND` tokens
further than ever before. Several suspects struck twice go on trial one after another. So the next death has one
suspect only, and after at most three deaths the culprit is condemned.

Signals that no fault in the engine raises (`kill -9` above all, which is also the kernel's answer to exhausted memory)
weigh less: a request that got further since its last strike is cleared of it, and it takes three strikes, not two.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable

from puna.ipc.blackbox import Moment

GROUND = 3
"""Tokens by which a request must get further than at its last strike to be cleared of it."""

ALONE = 2
"""Strikes as sole suspect that condemn, when the worker died of a fault."""

TOTAL = 3
"""Strikes of any kind that condemn a sole suspect."""


class _Record:
    """What is known of one request that has not ended."""

    __slots__ = ("alone", "depth", "mark", "proven", "seen", "shared", "started", "submitted")

    def __init__(self) -> None:
        self.depth = 0
        """Tokens of the furthest position it ever reached, its prompt included."""
        self.mark = 0
        """`depth` at its last strike."""
        self.alone = 0
        """Strikes as the only suspect."""
        self.shared = 0
        """Strikes as one of several."""
        self.started = False
        """Whether it was worked on by any worker."""
        self.submitted = False
        """Whether the present worker has it."""
        self.proven = False
        """Whether it took part in a successful step of the present worker."""
        self.seen = -1
        """Prompt tokens the present worker had read when it first spoke of it; those may come from a cache."""

    @property
    def strikes(self) -> int:
        return self.alone + self.shared

    @property
    def cleared(self) -> bool:
        """Whether it got clearly further than at its last strike."""
        return self.depth >= self.mark + GROUND


class Probation:
    """Decides which requests the present worker may have, and which never again."""

    def __init__(self) -> None:
        self._records: dict[int, _Record] = {}
        self._waiting: deque[int] = deque()
        self._on_trial: int | None = None
        self._open = False

    @property
    def on_trial(self) -> int | None:
        """The suspect that the present worker runs to find out."""
        return self._on_trial

    def arrived(self, id: int) -> None:
        """A new request was admitted."""
        self._records[id] = _Record()
        self._open = True

    def ended(self, id: int) -> None:
        """A request ended, in whatever way; unknown ids are ignored."""
        if self._records.pop(id, None) is None:
            return
        if id in self._waiting:
            self._waiting.remove(id)
        if self._on_trial == id:
            self._on_trial = None
        self._open = True

    def produced(self, id: int, depth: int) -> None:
        """The worker produced tokens for a request, which now has `depth` tokens in all."""
        record = self._records.get(id)
        if record is not None:
            self._proven(id, record)
            self._reached(id, record, depth)

    def read(self, id: int, depth: int) -> bool:
        """The worker has `depth` tokens of a request's prompt by now; whether that is progress."""
        record = self._records.get(id)
        if record is None:
            return False
        record.started = True
        if record.seen < 0:
            record.seen = depth
        elif depth > record.seen:
            record.seen = depth
            self._proven(id, record)
            self._reached(id, record, depth)
            return True
        return False

    def _proven(self, id: int, record: _Record) -> None:
        if not record.proven:
            record.proven = record.started = True
            self._open = True

    def _reached(self, id: int, record: _Record, depth: int) -> None:
        if depth > record.depth:
            record.depth = depth
            if id == self._on_trial and record.cleared:
                self._on_trial = None
                self._open = True

    def due(self) -> list[int]:
        """Return the requests to submit to the present worker now, in order; they count as submitted."""
        if not self._open:
            return []
        self._open = False
        due = self._due()
        for id in due:
            self._records[id].submitted = True
        return due

    def _due(self) -> list[int]:
        if self._on_trial is None and not self._waiting:
            return self._unsubmitted()
        due = [id for id in self._unsubmitted() if self._records[id].started and id not in self._waiting]
        if not due and self._on_trial is None and self._settled():
            self._on_trial = self._waiting.popleft()
            due.append(self._on_trial)
        return due

    def _unsubmitted(self) -> list[int]:
        return [id for id, record in self._records.items() if not record.submitted]

    def _settled(self) -> bool:
        """Whether everyone the worker has took part in a step, so that the next one alone is new."""
        return all(record.proven for record in self._records.values() if record.submitted and record.started)

    def died(self, moment: Moment, *, fault: bool) -> list[int]:
        """The present worker died: strike the suspects, and return the condemned, who have ended with this.

        `fault` says whether it died of itself rather than by a signal that comes from outside.
        """
        suspects = self._suspects(moment)
        for id in suspects:
            record = self._records[id]
            record.started = True
            if not fault and record.cleared:
                record.alone = record.shared = 0
            record.mark = record.depth
            if len(suspects) == 1:
                record.alone += 1
            else:
                record.shared += 1
        condemned = self._judge(suspects, fault=fault)
        for record in self._records.values():
            record.submitted = record.proven = False
            record.seen = -1
        self._open = True
        return condemned

    def excused(self) -> None:
        """The present worker died for a reason that has nothing to do with its requests."""
        self.died(Moment("idle", (), 0), fault=False)

    def _suspects(self, moment: Moment) -> list[int]:
        if moment.phase in ("load", "calibrate", "idle", "unknown"):
            return []
        named = [id for id in dict.fromkeys(moment.ids) if id in self._records and self._records[id].submitted]
        if self._on_trial in named:
            return [id for id in named if id == self._on_trial]
        unproven = [id for id in named if not self._records[id].proven]
        return unproven or named

    def _judge(self, suspects: Collection[int], *, fault: bool) -> list[int]:
        if self._on_trial is not None:
            # The trial is not over: it goes on with the next worker.
            self._waiting.appendleft(self._on_trial)
            self._on_trial = None
        if len(suspects) != 1:
            self._call(id for id in suspects if self._records[id].strikes >= ALONE)
            return []
        (id,) = suspects
        record = self._records[id]
        if record.strikes < TOTAL and not (fault and record.alone >= ALONE):
            self._call([id])
            return []
        self.ended(id)
        # The others were struck because of it.
        self._waiting.clear()
        for record in self._records.values():
            record.shared = 0
        return [id]

    def _call(self, ids: Iterable[int]) -> None:
        """Put these on the list of trials, in front of it when there is only one."""
        called = [id for id in ids if id not in self._waiting]
        self._waiting.extendleft(reversed(called))
