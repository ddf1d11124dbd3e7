"""What a step has to tell of each request."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Literal

from puna.engine.sampling import Choice
from puna.engine.sequence import Sequence
from puna.engine.slotjobs import INTERNAL_ID
from puna.ipc.frames import Output
from puna.types import Progress, StopType, Timings, TokenProb

Blame = Literal["invalid", "fault"]


class Outbox:
    """Collects a step's outputs, those of the engine's own requests left out."""

    def __init__(self) -> None:
        self._outputs: list[Output] = []

    def take(self) -> tuple[Output, ...]:
        """The outputs since this was last asked."""
        outputs, self._outputs = self._outputs, []
        return tuple(output for output in outputs if output.id < INTERNAL_ID)

    def chosen(
        self, sequence: Sequence, choices: Iterable[Choice], end: StopType, *, first: bool, n_drafted: int = 0, n_right: int = 0
    ) -> None:
        """New tokens, which may be the last ones; `n_right` of `n_drafted` had been guessed."""
        choices = tuple(choices)
        self._outputs.append(
            Output(
                id=sequence.id,
                tokens=tuple(token for choice in choices for token in choice.tokens),
                probs=tuple(choice.prob for choice in choices if choice.prob),
                end=end,
                truncated=sequence.n_dropped > 0,
                slot=sequence.slot,
                timings=timings(sequence) if first or end != "none" else None,
                drafted=n_drafted,
                draft_accepted=n_right,
            )
        )

    def ended(self, sequence: Sequence, end: StopType) -> None:
        """The end, without a token."""
        self._outputs.append(
            Output(
                id=sequence.id,
                end=end,
                truncated=sequence.n_dropped > 0,
                slot=sequence.slot,
                timings=timings(sequence),
            )
        )

    def failed(self, sequence: Sequence, message: str, kind: Blame) -> None:
        """The end, with an error."""
        self._outputs.append(Output(id=sequence.id, end="error", error=message, error_kind=kind, slot=sequence.slot))

    def too_long(self, sequence: Sequence, limit: int) -> None:
        """The end: the prompt leaves no room among `limit` tokens."""
        lengths = (sequence.n_prompt, limit)
        message = "the prompt is too long"
        self._outputs.append(Output(id=sequence.id, end="error", error=message, error_kind="length", lengths=lengths))

    def scored(self, sequence: Sequence, probs: tuple[TokenProb, ...]) -> None:
        """Probabilities of prompt tokens."""
        self._outputs.append(Output(id=sequence.id, prompt_probs=probs, slot=sequence.slot))

    def progress(self, sequence: Sequence) -> None:
        """How far a prompt was read, if that is wanted and new."""
        done = min(sequence.n_done, sequence.n_prompt)
        if not sequence.generation.want_progress or done == sequence.last_progress:
            return
        sequence.last_progress = done
        elapsed = 1000 * (time.monotonic() - sequence.started)
        progress = Progress(sequence.n_prompt, sequence.n_cached, done, elapsed)
        self._outputs.append(Output(id=sequence.id, progress=progress, slot=sequence.slot))


def timings(sequence: Sequence) -> Timings:
    """What a sequence has cost so far."""
    now = time.monotonic()
    first = sequence.first_token or now
    return Timings(
        cache_n=sequence.n_cached,
        prompt_n=sequence.n_prompt - sequence.n_cached,
        prompt_ms=1000 * (first - sequence.started),
        predicted_n=sequence.n_produced,
        predicted_ms=1000 * (now - first),
        queue_ms=1000 * (sequence.started - sequence.arrived),
        draft_n=sequence.n_drafted,
        draft_n_accepted=sequence.n_draft_accepted,
    )
