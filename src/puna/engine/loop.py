"""The engine: one step after another."""

from __future__ import annotations

import time
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf

from puna.engine.adapters import Adapters
from puna.engine.arena import Arena
from puna.engine.budget import StepBudget
from puna.engine.choosing import MOST_FORCED, Chooser
from puna.engine.constraint import ConstraintFactory
from puna.engine.disk.idle import IdleWriter
from puna.engine.disk.jobs import FileThread
from puna.engine.disk.statefile import Identity
from puna.engine.disk.tier import DiskTier
from puna.engine.drafting import Drafting
from puna.engine.intake import Intake
from puna.engine.length import ContextLength
from puna.engine.media.reader import MediaFault, MediaReader
from puna.engine.media.runs import Run
from puna.engine.memory import MemoryFault
from puna.engine.outbox import Blame, Outbox
from puna.engine.recorder import Recorder
from puna.engine.reuse import PrefixReuse
from puna.engine.runner import End
from puna.engine.sampling import Choice, TokenSampler, before_chain
from puna.engine.sampling_pool import SamplingPool
from puna.engine.scheduler import Plan, Scheduler
from puna.engine.seating import seat_together
from puna.engine.sequence import Sequence
from puna.engine.shift import choose_shift
from puna.engine.slotjobs import SlotJobs
from puna.engine.slots import SlotPrompt
from puna.engine.stats import Counters, slot_state, slot_states
from puna.engine.tiers import HostTier
from puna.errors import InvalidRequest
from puna.ipc.frames import Abort, EndThinking, Step, Submit
from puna.llama.context import DecodeError, NoRoom
from puna.llama.sampler import Candidates
from puna.llama.vocab import Vocab
from puna.types import StopType

FILE_WAIT = 0.02
"""Seconds that a step waits for work on files when there is nothing else to do."""

OVERFLOW = "with these adapters the model's numbers grow beyond all bounds; use smaller scales"


class Engine:
    """Requests in, steps out. `step` plans, runs and applies; everything else serves one of the three."""

    def __init__(
        self,
        *,
        vocab: Vocab,
        arena: Arena,
        scheduler: Scheduler,
        budget: StepBudget,
        host: HostTier,
        constraints: ConstraintFactory,
        adapters: Adapters,
        drafting: Drafting,
        files: FileThread,
        identity: Identity,
        disk: DiskTier | None,
        media: MediaReader | None,
        n_threads: int,
        recorder: Recorder,
        warn: Callable[[str], None],
    ) -> None:
        self._vocab = vocab
        self._arena = arena
        self._memory = arena.memory
        self._runner = arena.runner
        self._scheduler = scheduler
        self._budget = budget
        self._host = host
        self._recorder = recorder
        self._candidates = Candidates(vocab.n_tokens)
        self._constraints = constraints
        self._adapters = adapters
        self._counters = Counters()
        self._reuse = PrefixReuse(scheduler, arena.memory, host, self._counters, warn, can_cut=scheduler.can_cut)
        self._length = ContextLength(arena, scheduler, self._preempt)
        self._reuse.lower = self._disk = disk
        self._files = files
        self._idle_writer = IdleWriter(host, disk)
        self.slot_jobs = SlotJobs(scheduler.slots, host, self._reuse, files, identity, base=adapters.base)
        self._outbox = Outbox()
        self._media = media
        self._intake = Intake(constraints, media, arena, self._outbox)
        self.compiling = self._intake.waiting
        self._drafting = drafting
        self._warn = warn
        pool: SamplingPool[Choice] = SamplingPool(vocab.n_tokens, n_threads)
        self._chooser = Chooser(arena, self._candidates, pool, self._counters, self._outbox, recorder)

    # requests

    def submit(self, request: Submit) -> None:
        """Queue a request."""
        sequence = Sequence(request, arrived=time.monotonic())
        if self._intake.add(sequence) is not None:
            self._scheduler.add(sequence)

    def abort(self, request: Abort) -> None:
        """Stop a request; what it has read and produced stays in the cache. Unknown ids have already ended."""
        self._intake.remove(request.id)
        sequence = self._scheduler.find(request.id)
        if sequence is not None:
            self._release(sequence)

    def end_thinking(self, request: EndThinking) -> None:
        """Let a request think no further. Unknown ids have already ended."""
        if sequence := self._scheduler.find(request.id) or self.compiling.find(request.id):
            sequence.stop_thinking()

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return not (self._scheduler.running or self._scheduler.waiting or self.compiling) and self.slot_jobs.idle

    @property
    def keeps_on_disk(self) -> bool:
        """Whether there is a disk tier."""
        return self._disk is not None

    def close(self, seconds: float) -> int:
        """End everything and bring what rests in host memory to the disk, within so many seconds; how much is lost."""
        for sequence in list(self._scheduler.running):
            self._release(sequence)
        return self._disk.flush(self._host.entries(), seconds) if self._disk is not None else 0

    @property
    def patience(self) -> float | None:
        """Seconds that other work may take between two steps, for streams that run; None while there are none."""
        n_decoding = self._scheduler.n_decoding
        return self._budget.patience(n_decoding) if n_decoding else None

    # one step

    def step(self) -> Step:
        """Admit, plan, run and apply once. Never raises for a request's fault: that ends the request alone."""
        self._idle_writer.busy(time.monotonic())
        self._queue_ready()
        busy = {sequence.slot for sequence in self._scheduler.running}
        self._scheduler.waiting.extendleft(self.slot_jobs.advance(busy, self._arena.limit))
        for sequence in self._scheduler.admit():
            self._make_length()  # first, so that what is kept of its prompt has room
            if sequence.seat >= 0:
                self._start(sequence)
        self._make_length()
        self._reuse.serve_arrivals()
        self._reuse.serve_followers()
        seat_together(self._scheduler, self._arena)
        self._shift()
        self._reuse.verify()
        plan = self._plan()
        if plan.pieces:
            self._run(plan)
        elif not self.idle:
            self._files.wait(FILE_WAIT)
        self._recorder.record("prepare" if self.compiling else "idle", self.compiling.ids)
        return self.report()

    def report(self) -> Step:
        """A frame with the outputs so far and the present state."""
        stats = self._counters.snapshot(self._scheduler, self._host, self._disk, self._media)
        return Step(self._outbox.take(), stats, slot_states(self._scheduler))

    def _queue_ready(self) -> None:
        """Let requests queue that are ready now; wait a moment for one if there is nothing else to do."""
        for sequence in self._intake.take_ready(patient=not (self._scheduler.running or self._scheduler.waiting)):
            self._scheduler.add(sequence)

    @property
    def tidies_in(self) -> float | None:
        """Seconds after which an idle engine wants `tidy` to be called; None for never."""
        waits = (self._arena.shrinks_in, self._idle_writer.wait(time.monotonic()))
        return min((wait for wait in waits if wait is not None), default=None)

    def tidy(self) -> None:
        """Give back what nobody has needed for a while, and write what rests in host memory only."""
        self._length.shrink(self.compiling)
        self._idle_writer.write(time.monotonic())

    def _make_length(self) -> None:
        """Fit the context's length to the requests."""
        for sequence in self._length.fit(self.compiling):
            if not self._overflows(sequence):
                self._fail(sequence, f"there is no memory for a sequence of {len(sequence.tokens)} tokens", "fault")

    def _shift(self) -> None:
        """Move cells, and drop the oldest part of sequences that outgrow the context. Directly before a decode."""
        for sequence in self._scheduler.running:
            self._reuse.rearrange(sequence, self._arena.length)
            if self._overflows(sequence) and sequence.n_done:
                keep, discard = self._drop_oldest(sequence)
                self._memory.shift(sequence.seat, keep, discard)
                sequence.n_done -= discard

    def _overflows(self, sequence: Sequence) -> bool:
        return len(sequence.tokens) > self._arena.limit and self._arena.may_shift(sequence)

    def _drop_oldest(self, sequence: Sequence) -> tuple[int, int]:
        """Take the oldest tokens that may go out of the list; how many stay before them, and how many they are."""
        wish = sequence.generation
        keep, discard = choose_shift(
            sequence.n_done or len(sequence.tokens) - 1,
            self._arena.limit,
            n_prompt=sequence.n_prompt,
            n_keep=wish.n_keep,
            n_discard=wish.n_discard,
            add_bos=self._vocab.add_bos,
        )
        sequence.drop(keep, discard)
        return keep, discard

    def _plan(self) -> Plan:
        plan = self._scheduler.plan(self._budget.tokens(self._scheduler.n_decoding), self._runner.capacity)
        return self._drafting.extend(plan, capacity=self._runner.capacity, length=self._arena.length)

    def _run(self, plan: Plan) -> None:
        if plan.run is not None and not self._has_vectors(plan.pieces[0].sequence, plan.run):
            return
        self._recorder.record("decode", [*(piece.sequence.id for piece in plan.pieces), *self.compiling.ids])
        try:
            computed = self._runner.run(plan)
        except NoRoom as error:
            if plan.n_drafted:
                self._run(plan.without_drafts())
            else:
                self._make_room(plan, error)
            return
        except DecodeError as error:
            for piece in plan.pieces:
                self._fail(piece.sequence, f"the engine could not compute this: {error}", "fault")
            return
        self._recorder.decoded()
        if not plan.n_drafted:
            self._budget.observe(plan.n_decoding, plan.n_prefill, computed.seconds)
        self._drafting.observe(plan)
        self._counters.step(plan, computed.seconds)
        self._end_overflowed(computed.overflowed)
        for sequence, row, position in computed.scored:
            self._report_prompt(sequence, row, position)
        for piece in plan.pieces:
            if piece.sequence in computed.overflowed:
                continue
            self._outbox.progress(piece.sequence)
            if piece.sequence.enters_phase:
                self._reuse.keep(piece.sequence)  # for those who want the same without the adapters that come now
            self._reuse.checkpoint(piece.sequence)
        self._chooser.look_ahead(computed.ends)
        for end in computed.ends:
            self._advance(end)
        if computed.spoiled:
            self._arena.clean(self._scheduler.running)

    def _has_vectors(self, sequence: Sequence, run: Run) -> bool:
        """Whether a run's vectors are there. If not, this step went into encoding them, and others have their turn first."""
        if sequence.encoded is not None and sequence.encoded[0] == run.name:
            return True
        assert self._media is not None
        if (known := self._media.known(run)) is not None:
            sequence.encoded = (run.name, known)
            return True
        self._recorder.record("encode", [sequence.id, *self.compiling.ids])
        try:
            sequence.encoded = (run.name, self._media.encode(run))
        except MediaFault as error:
            self._fail(sequence, f"the engine could not encode this: {error}", "fault")
        return False

    # starting

    def _start(self, sequence: Sequence) -> None:
        """First work on an admitted request: its sampler, and as much of its prompt as can be had for nothing."""
        sequence.started = time.monotonic()
        self._recorder.record("constrain", (sequence.id,))
        try:
            self._make_sampler(sequence)
        except InvalidRequest as error:
            self._fail(sequence, error.message, "invalid")
            return
        while self._overflows(sequence):  # it was shifted before, by a worker that is gone
            self._drop_oldest(sequence)
        self._reuse.find(sequence)

    def _make_sampler(self, sequence: Sequence) -> None:
        if sequence.sampler is not None:  # it was preempted and goes on with what it had
            return
        request = sequence.generation
        if not sequence.internal:
            sequence.cache_key = self._adapters.base
            sequence.phases = self._adapters.phases(request.lora, sequence.prompt)
        matcher = self._constraints.make(request.constraint) if request.constraint else None
        sequence.sampler = sampler = TokenSampler(request.sampling, self._vocab, matcher, request.thinking, self._arena.limit)
        most = 1 if request.deterministic else MOST_FORCED
        sampler.prime([token for token in sequence.prompt if token >= 0], sequence.submit.produced, self._candidates, most)
        if sequence.end_thinking:
            sequence.stop_thinking()

    # going on

    def _advance(self, end: End) -> None:
        """Choose what follows a sequence, or end it; nothing of a draft stays but what was chosen too."""
        sequence = end.sequence
        outcome = self._chooser.advance(end)
        if end.draft:
            try:
                self._memory.cut(sequence.seat, sequence.held)
            except MemoryFault as error:
                self._warn(f"what was drafted could not be taken back: {error}")  # and the next step finds the seat empty
        if outcome == "error":
            self._fail(sequence, self._chooser.error, self._chooser.blame)
        elif outcome != "none":
            self._release(sequence)

    def _report_prompt(self, sequence: Sequence, row: int, position: int) -> None:
        """The probabilities of the prompt tokens that follow the rows just computed."""
        n_probs = sequence.generation.sampling.n_probs
        first = max(position, sequence.n_scored)  # a preempted prompt is read again, but not reported again
        last = min(sequence.n_done, sequence.n_prompt - 1)
        probs = tuple(
            before_chain(self._runner.logits(row + at - position), sequence.tokens[at + 1], n_probs) for at in range(first, last)
        )
        if probs:
            sequence.n_scored = last
            self._outbox.scored(sequence, probs)

    # ending

    def _end(self, sequence: Sequence, end: StopType) -> None:
        self._outbox.ended(sequence, end)
        self._release(sequence)

    def _fail(self, sequence: Sequence, message: str, kind: Blame) -> None:
        self._outbox.failed(sequence, message, kind)
        self._release(sequence, error=message)

    def _release(self, sequence: Sequence, *, error: str = "") -> None:
        """Give back a sequence's seat. What it holds goes to host memory first, unless there was an error."""
        self._scheduler.remove(sequence)
        self._drafting.forget(sequence)
        if sequence.seat >= 0:
            if sequence.internal:
                whole = not error and not sequence.n_pending
                self.slot_jobs.read(sequence, self._memory.rest(sequence.seat) if whole else None, error)
            else:
                self._leave_slot(sequence, held=not error)
            if not error:
                self._reuse.keep(sequence)
            self._memory.drop(sequence.seat)
            sequence.seat = -1
        if sequence.sampler is not None:
            sequence.sampler.close()
            sequence.sampler = None

    def _end_overflowed(self, sequences: SequenceOf[Sequence]) -> None:
        for sequence in sequences:
            self._fail(sequence, OVERFLOW, "invalid")
        if sequences:
            self._arena.clean(self._scheduler.running)

    def _make_room(self, plan: Plan, error: NoRoom) -> None:
        """Cells ran out: the youngest sequence in the plan waits until there are some."""
        youngest = max((piece.sequence for piece in plan.pieces), key=lambda sequence: sequence.started)
        if len(self._scheduler.running) == 1:
            self._fail(youngest, f"the context has no room for this sequence: {error}", "fault")
            return
        self._preempt(youngest)

    def _preempt(self, sequence: Sequence) -> None:
        """Send a running sequence back to the queue; it goes on later with what rests in host memory."""
        if not sequence.internal:
            self._leave_slot(sequence, held=True)
        self._reuse.keep(sequence)
        self._drafting.forget(sequence)
        self._memory.drop(sequence.seat)
        self._scheduler.preempt(sequence)

    def _leave_slot(self, sequence: Sequence, *, held: bool) -> None:
        """Note what a slot holds that is about to be left, unless nothing has come into it."""
        if length := sequence.runs.clip(sequence.n_done):
            key = sequence.key_at(length)
            tokens = SlotPrompt(sequence.tokens[:length], key, sequence.cache_key, sequence.phases)
            self._scheduler.slots.leave(sequence.slot, tokens if held else None, slot_state(sequence, busy=False))
            self._reuse.pins.drop(sequence.slot)
