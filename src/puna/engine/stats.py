"""What the engine counts."""

from __future__ import annotations

from dataclasses import dataclass, field

from puna.engine.disk.tier import DiskCounters, DiskTier
from puna.engine.media.reader import MediaReader
from puna.engine.scheduler import Plan, Scheduler
from puna.engine.sequence import Sequence
from puna.engine.tiers import HostTier
from puna.types import EngineStats, SlotState

FIRST_PROMPT_RATE = 500.0
"""Prompt tokens a second, before enough were read to tell."""

FEW = 256
"""Prompt tokens that are not enough to tell."""


@dataclass(slots=True)
class Counters:
    """Totals since the worker's start."""

    n_decode: int = 0
    n_busy_slots: int = 0
    prompt_tokens: int = 0
    prompt_seconds: float = 0.0
    predicted_tokens: int = 0
    predicted_seconds: float = 0.0
    cache_hits: int = 0
    cache_tokens: int = 0
    cache_copies: int = 0
    cache_moved: int = 0
    checkpoints: int = 0
    disk_hits: int = 0
    n_tokens_max: int = 0
    drafted: list[int] = field(default_factory=list)
    """Drafted tokens by their place in the draft."""
    draft_accepted: list[int] = field(default_factory=list)

    @property
    def prompt_rate(self) -> float:
        """Prompt tokens read in a second."""
        return self.prompt_tokens / self.prompt_seconds if self.prompt_tokens >= FEW else FIRST_PROMPT_RATE

    def step(self, plan: Plan, seconds: float) -> None:
        """Count a finished step; its time goes to prefill and decode by their share of its rows."""
        self.n_decode += 1
        self.n_busy_slots += len(plan.pieces)
        self.prompt_tokens += plan.n_prefill
        rows = plan.n_prefill + plan.n_decoding
        self.prompt_seconds += seconds * plan.n_prefill / rows
        self.predicted_seconds += seconds * plan.n_decoding / rows
        self.n_tokens_max = max(self.n_tokens_max, *(piece.sequence.n_done for piece in plan.pieces))

    def draft(self, n_drafted: int, n_right: int) -> None:
        """Count a draft of which so many tokens turned out right."""
        for counts, n in ((self.drafted, n_drafted), (self.draft_accepted, n_right)):
            counts.extend([0] * (n_drafted - len(counts)))
            for place in range(n):
                counts[place] += 1

    def snapshot(
        self, scheduler: Scheduler, host: HostTier, disk: DiskTier | None = None, media: MediaReader | None = None
    ) -> EngineStats:
        """The counters and the present state as the server gets them."""
        below = disk.counters if disk is not None else DiskCounters()
        return EngineStats(
            n_running=len(scheduler.running),
            n_waiting=len(scheduler.waiting),
            cells_used=sum(sequence.n_done for sequence in scheduler.running),
            cache_bytes=host.n_bytes,
            cache_limit=host.capacity,
            cache_entries=len(host),
            cache_hits=self.cache_hits,
            cache_copies=self.cache_copies,
            cache_tokens=self.cache_tokens,
            cache_moved=self.cache_moved,
            cache_checkpoints=self.checkpoints,
            cache_evictions=host.n_evicted,
            disk_bytes=disk.n_bytes if disk is not None else 0,
            disk_entries=len(disk) if disk is not None else 0,
            disk_hits=self.disk_hits,
            disk_writes=below.n_written,
            disk_evictions=below.n_evicted,
            disk_bad=below.n_bad,
            disk_lost=below.n_lost,
            n_decode=self.n_decode,
            n_busy_slots=self.n_busy_slots,
            prompt_tokens=self.prompt_tokens,
            prompt_ms=1000 * self.prompt_seconds,
            predicted_tokens=self.predicted_tokens,
            predicted_ms=1000 * self.predicted_seconds,
            n_tokens_max=self.n_tokens_max,
            drafted=tuple(self.drafted),
            draft_accepted=tuple(self.draft_accepted),
            media_encoded=media.n_encoded if media is not None else 0,
            media_ms=1000 * media.seconds if media is not None else 0.0,
            media_hits=media.encodings.n_hits if media is not None else 0,
            media_bytes=media.encodings.n_bytes if media is not None else 0,
            media_limit=media.encodings.capacity if media is not None else 0,
        )


def slot_states(scheduler: Scheduler) -> tuple[SlotState, ...]:
    """The slots that are busy and those that were left since this was last asked, as the server gets them."""
    states = {state.id: state for state in scheduler.slots.take_changed()}
    states.update({sequence.slot: slot_state(sequence, busy=True) for sequence in scheduler.running})
    return tuple(states.values())


def slot_state(sequence: Sequence, *, busy: bool) -> SlotState:
    """A sequence as its slot shows it."""
    return SlotState(
        id=sequence.slot,
        busy=busy,
        request=sequence.id,
        n_prompt=sequence.n_prompt,
        n_prompt_done=min(sequence.n_done, sequence.n_prompt),
        n_cached=sequence.n_cached,
        n_decoded=sequence.n_produced,
    )
