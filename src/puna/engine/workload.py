"""Everything that a worker does for its requests: text from one context, vectors from another, in turns."""

from __future__ import annotations

import msgspec

from puna.engine.loop import Engine
from puna.engine.pooling import Pooler
from puna.ipc.frames import Abort, Embed, EndThinking, Pooled, SlotDone, SlotJob, Step, Submit
from puna.types import EngineStats, SlotState


class Workload:
    """What a model can do here; either part may be missing."""

    def __init__(self, generator: Engine | None, pooler: Pooler | None) -> None:
        self.generator = generator
        self.pooler = pooler
        self._pooled_last = False
        self._refused: list[SlotDone] = []

    def submit(self, request: Submit | Embed) -> None:
        """Queue a request. The server sends none of a kind that there is nobody for."""
        if isinstance(request, Embed):
            if self.pooler is not None:
                self.pooler.submit(request)
        elif self.generator is not None:
            self.generator.submit(request)

    def abort(self, request: Abort) -> None:
        """Stop a request; unknown ids have already ended."""
        if self.generator is not None:
            self.generator.abort(request)
        if self.pooler is not None:
            self.pooler.abort(request.id)

    def end_thinking(self, request: EndThinking) -> None:
        """Let an answer think no further; unknown ids have already ended."""
        if self.generator is not None:
            self.generator.end_thinking(request)

    def add_slot_job(self, job: SlotJob) -> None:
        """Queue something to be done with what a slot holds."""
        if self.generator is not None:
            self.generator.slot_jobs.add(job)
        else:
            self._refused.append(SlotDone(id=job.id, error="this model does not generate text: no slot holds anything"))

    def take_slots_done(self) -> list[SlotDone]:
        """The ends of slot jobs since this was last asked."""
        refused, self._refused = self._refused, []
        return refused + (list(self.generator.slot_jobs.take_done()) if self.generator is not None else [])

    @property
    def keeps_on_disk(self) -> bool:
        """Whether resting prompts go to the disk."""
        return self.generator is not None and self.generator.keeps_on_disk

    def close(self, seconds: float) -> int:
        """End all text and bring to the disk what is to last, within so many seconds; how much is lost."""
        return self.generator.close(seconds) if self.generator is not None else 0

    @property
    def tidies_in(self) -> float | None:
        """Seconds after which, if nothing comes, `tidy` should be called; None for never."""
        return self.generator.tidies_in if self.generator is not None else None

    def tidy(self) -> None:
        """Give back what nothing has needed for a while."""
        if self.generator is not None:
            self.generator.tidy()

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return (self.generator is None or self.generator.idle) and (self.pooler is None or self.pooler.idle)

    def step(self) -> Step:
        """One step of whichever has something to do; of both in turn while both have."""
        generator, pooler = self.generator, self.pooler
        generating = generator is not None and not generator.idle
        if pooler is None or pooler.idle or (generating and self._pooled_last):
            self._pooled_last = False
            return self._counted(generator.step()) if generator is not None else self.report()
        self._pooled_last = True
        if generator is None:
            return self._report(pooler.step(None))
        return self._report(pooler.step(generator.patience, generator.compiling.ids))

    def report(self) -> Step:
        """The present state."""
        return self._report(())

    def _report(self, pooled: tuple[Pooled, ...]) -> Step:
        if self.generator is not None:
            frame = self._counted(self.generator.report())
            return msgspec.structs.replace(frame, pooled=pooled) if pooled else frame
        slots = () if self.idle else (SlotState(id=0, busy=True),)
        return self._counted(Step((), EngineStats(), slots, pooled))

    def _counted(self, frame: Step) -> Step:
        """With what the vectors cost counted in."""
        pooler, stats = self.pooler, frame.stats
        if pooler is None:
            return frame
        stats = msgspec.structs.replace(
            stats,
            n_pooling=pooler.n_requests,
            pooled_inputs=pooler.n_inputs,
            pooled_tokens=pooler.n_tokens,
            pooled_ms=1000 * pooler.seconds,
        )
        return msgspec.structs.replace(frame, stats=stats)
