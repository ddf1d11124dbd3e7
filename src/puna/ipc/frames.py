"""Everything that crosses between the server and a worker. Structs only.

Server to worker: `Load`, then any number of `Submit`, `Embed`, `Abort`, `EndThinking` and `SlotJob`, perhaps `Close`.
Worker to server: `Loading`*, then `Ready` or `Failed`, then `Step`s and `SlotDone`s.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from puna.config import EngineSettings
from puna.tuning import Tuning
from puna.types import (
    EngineStats,
    Generation,
    Media,
    ModelFacts,
    Progress,
    SlotAction,
    SlotOutcome,
    SlotState,
    StopType,
    Timings,
    TokenProb,
)


class Load(msgspec.Struct, frozen=True, tag=True):
    """First frame: what to load and how."""

    settings: EngineSettings
    safe_mode: bool = False
    """Load without repacked weights (`use_extra_bufts = false`), after an illegal instruction."""
    tuning: Tuning | None = None
    """What an earlier worker found out about the model, so that this one need not."""


class Submit(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """Generate one sequence. Answered by `Output`s with the same id, the last of which has an end."""

    id: int
    """Unique within the server's life; a resubmission after a crash uses the same one."""
    generation: Generation
    produced: tuple[int, ...] = ()
    """Tokens this request had produced before its worker died: they are read, not sent again, and the sampler,
    penalties, constraint and random state are brought to where they were. They count towards `max_tokens`."""
    end_thinking: bool = False
    """Whether `EndThinking` was sent for it before its worker died."""


class Embed(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """Make inputs into vectors, or into scores. Answered by `Pooled`s with the same id until every index was there."""

    id: int
    """From the same numbers as those of `Submit`."""
    inputs: tuple[bytes, ...]
    """Token ids of each, at least one, as 32-bit integers of the machine's byte order."""
    indices: tuple[int, ...]
    """The number of each within the request: after a crash only those without an answer are sent again."""
    lora: tuple[tuple[int, float], ...] = ()
    """(adapter id, scale) pairs of the adapters that take part, by id."""
    media: tuple[tuple[Media, ...], ...] = ()
    """What stands at the `MEDIA` of each input; nothing at all where no input has any."""


class Abort(msgspec.Struct, frozen=True, tag=True):
    """Stop this request within one step, whatever its state. It gets no further output."""

    id: int


class EndThinking(msgspec.Struct, frozen=True, tag=True):
    """Let this request think no further: what it thinks now is closed, and so is at once whatever it would think later."""

    id: int


class SlotJob(msgspec.Struct, frozen=True, tag=True):
    """Save, restore or erase what a slot last held. Waits until the slot is idle; answered by a `SlotDone`."""

    id: int
    """Unique within the server's life, in a count of its own."""
    action: SlotAction
    slot: int
    path: str = ""
    """The file to write or to read; not for erasing."""


class Close(msgspec.Struct, frozen=True, tag=True):
    """Last frame: end all requests, bring resting prompts to the disk, and exit."""

    seconds: float
    """How long that may take."""


class Loading(msgspec.Struct, frozen=True, tag=True):
    """Weights are being read."""

    progress: float
    """0 to 1."""


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The model is loaded and work may come."""

    facts: ModelFacts


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The model could not be loaded; the worker exits after this."""

    reason: str


class Output(msgspec.Struct, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """What one step brought for one request."""

    id: int
    tokens: tuple[int, ...] = ()
    """New tokens, the end-of-generation token not among them."""
    probs: tuple[TokenProb, ...] = ()
    end: StopType | Literal["error"] = "none"
    """Why it ended; `none` while it goes on."""
    error: str = ""
    """For an end of `error`: what happened, fit for the client."""
    error_kind: Literal["invalid", "length", "fault"] = "fault"
    """Whether the caller (`invalid`, a bad grammar for instance) or the server is to blame. `length`: the prompt turned out too
    long, with all that its media take."""
    lengths: tuple[int, int] = (0, 0)
    """For an error of `length`: the prompt's tokens, and how many there may be."""
    progress: Progress | None = None
    prompt_probs: tuple[TokenProb, ...] = ()
    """Probabilities of further prompt tokens, the second one first: nothing comes before a prompt's first token."""
    truncated: bool = False
    """Whether the context was shifted, so that the answer no longer sees all that came before."""
    slot: int = -1
    timings: Timings | None = None
    """Set on the first output with a token and on the last one."""
    drafted: int = 0
    """Tokens that were drafted for this step."""
    draft_accepted: int = 0


class Pooled(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """What one step brought for one request's inputs."""

    id: int
    indices: tuple[int, ...] = ()
    """Inputs that are done, or with `part` the one that has got further."""
    vectors: tuple[bytes, ...] = ()
    """For each its 32-bit floats: one vector, a score's outputs, or without pooling one vector a token."""
    part: bool = False
    """Whether more vectors of the same input follow."""
    n_tokens: int = 0
    """Of an input with media, which comes alone: its tokens with all that they take; 0 of others."""
    error: str = ""
    """Why the request failed as a whole; nothing follows."""
    error_kind: Literal["invalid", "fault"] = "fault"


class Step(msgspec.Struct, frozen=True, tag=True):
    """Everything one engine step produced, in one frame."""

    outputs: tuple[Output, ...]
    stats: EngineStats
    slots: tuple[SlotState, ...]
    """The busy ones, and those that a request has left since the last frame."""
    pooled: tuple[Pooled, ...] = ()


class SlotDone(msgspec.Struct, frozen=True, tag=True, kw_only=True, omit_defaults=True):
    """What became of a `SlotJob`. After an error the slot holds what it held before."""

    id: int
    outcome: SlotOutcome = SlotOutcome()
    error: str = ""
    """What was wrong, fit for the client; empty when nothing was."""
    error_kind: Literal["invalid", "fault"] = "invalid"


ToWorker = Load | Submit | Embed | Abort | EndThinking | SlotJob | Close
ToServer = Loading | Ready | Failed | Step | SlotDone
