"""A request while it is in the engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from puna.engine.adapters import PLAIN, AdapterSet, Phase, Phases, agreement, without
from puna.engine.media.runs import NO_RUNS, Run, Runs
from puna.ipc.frames import Submit
from puna.types import Generation

USUAL_ANSWER = 256
"""Tokens that are still to come, as far as is expected, where a request sets no limit."""

MOVED = b"moved;"
"""Ends the namespace of sequences with moved cells: only requests that allow moving find them."""

if TYPE_CHECKING:  # so that scheduling can be tested without the engine's library
    from concurrent.futures import Future

    from puna.engine.drafting import Draft
    from puna.engine.sampling import TokenSampler
    from puna.engine.tiers import Stored
    from puna.llama.batch import FloatArray


@dataclass(slots=True, eq=False)
class Sequence:
    """One request: its tokens, and how many of them have cells in the context.

    There are no phases. Tokens beyond `n_done` are still to be computed; when none but the newest is, the sequence
    decodes, and before that it prefills. A resumed or preempted request is simply one with more tokens to prefill.
    """

    submit: Submit
    arrived: float
    """Monotonic seconds."""
    tokens: list[int] = field(init=False)
    """Prompt and answer; vectors of pictures and sounds count as tokens."""
    n_prompt: int = field(init=False)
    """How many of them are the prompt's."""
    runs: Runs = NO_RUNS
    """Where vectors stand among them."""
    awaits_media: bool = field(init=False)
    """Whether its pictures and sounds are still to be put among them."""
    encoded: tuple[bytes, FloatArray] | None = None
    """The name of a run and its vectors, while they are being read."""
    n_done: int = 0
    """How many of `tokens` are in memory."""
    n_cached: int = 0
    """Prompt tokens that were taken from somewhere instead of being computed."""
    cache_key: bytes = b""
    """What beside tokens and adapters decides on the cells' content: cells are shared under equal keys only."""
    phases: Phases = PLAIN
    """Which adapters apply where."""
    seat: int = -1
    """The engine's sequence id, -1 while it waits."""
    slot: int = -1
    """The public slot, -1 while it waits."""
    leader: Sequence | None = None
    """A running sequence that is computing a prefix this one will copy."""
    leader_goal: int = 0
    """How many tokens the leader must have in memory before they are copied."""
    checkpoints: list[int] = field(default_factory=list)
    """Numbers of tokens in memory, ascending, at which reading the prompt pauses for its state to be kept."""
    fetching: Future[Stored | None] | None = None
    """What is being brought for it from below host memory; it waits for that."""
    arriving: int = 0
    """How many of its tokens will be in memory then."""
    arriving_key: bytes = b""
    """The namespace that it is from."""
    internal: bool = False
    """Whether it is the engine's own: it reads the prompt of its slot, and nobody hears of it."""
    moved: bool = False
    """Whether cells were moved to where the prompt has their tokens: they are not what reading it would have made."""
    rearranged: bool = False
    """Whether it was tried to move any."""
    sampler: TokenSampler | None = None
    end_thinking: bool = field(init=False)
    """Whether it may think no further."""
    started: float = 0.0
    """When the first work on it began."""
    first_token: float = 0.0
    """When it produced its first token; 0 before that."""
    last_progress: int = 0
    n_scored: int = 0
    """Prompt tokens, the first left out, whose probabilities were reported."""
    n_dropped: int = 0
    """Tokens that context shifts have taken out of `tokens`."""
    draft: Draft | None = None
    """What guesses its tokens, once something has."""
    n_drafted: int = 0
    """Tokens that were computed on a guess."""
    n_draft_accepted: int = 0
    """Those of them that turned out right."""
    n_fresh: int = 0
    """Tokens that the last step appended: the one it chose, and those that a grammar forced after it."""

    def __post_init__(self) -> None:
        self.tokens = [*self.generation.prompt, *self.submit.produced]
        self.n_prompt = len(self.generation.prompt)
        self.awaits_media = bool(self.generation.media)
        self.end_thinking = self.submit.end_thinking

    def expand(self, prompt: list[int], runs: Runs) -> None:
        """Take the prompt as it is with all that its media take."""
        self.tokens = [*prompt, *self.submit.produced]
        self.n_prompt = len(prompt)
        self.runs = runs
        self.awaits_media = False

    def stop_thinking(self) -> None:
        """Let it think no further, now or once it begins."""
        self.end_thinking = True
        if self.sampler is not None:
            self.sampler.end_thinking()

    @property
    def generation(self) -> Generation:
        """What was asked for."""
        return self.submit.generation

    @property
    def id(self) -> int:
        return self.submit.id

    def leaders(self) -> Iterator[Sequence]:
        """This sequence, the one it waits for, the one that waits for, and so on."""
        sequence: Sequence | None = self
        while sequence is not None:
            yield sequence
            sequence = sequence.leader

    @property
    def prompt(self) -> tuple[int, ...]:
        """The prompt's tokens, until a context shift takes some of them out."""
        return tuple(self.tokens[: self.n_prompt])

    @property
    def held(self) -> int:
        """Positions that it should have in memory."""
        return self.runs.span(self.n_done)

    @property
    def next_run(self) -> Run | None:
        """The run that the next pending token is a vector of."""
        return self.runs.at(self.n_done) if self.runs else None

    @property
    def n_produced(self) -> int:
        return len(self.tokens) + self.n_dropped - self.n_prompt

    @property
    def n_pending(self) -> int:
        """Tokens that have no cells yet."""
        return len(self.tokens) - self.n_done

    @property
    def n_expected(self) -> int:
        """Tokens that there will be at the end, as far as can be told now."""
        limit = self.generation.max_tokens
        return len(self.tokens) + (USUAL_ANSWER if limit < 0 else max(0, limit - self.n_produced))

    @property
    def decoding(self) -> bool:
        """Whether all but the newly produced tokens is in memory."""
        return 0 < self.n_pending <= self.n_fresh

    @property
    def adapters(self) -> AdapterSet:
        """Those under which the next pending token is to be computed."""
        return self._phase_at(self.n_done).adapters

    @property
    def n_same(self) -> int:
        """Pending tokens up to where other adapters apply, or vectors begin or end."""
        end = min([len(self.tokens), *(phase.start for phase in self.phases if phase.start > self.n_done)])
        return min(end - self.n_done, self.runs.alike(self.n_done))

    @property
    def enters_phase(self) -> bool:
        """Whether other adapters applied to all that is in memory than do to what is pending."""
        return self.n_done > 0 and any(phase.start == self.n_done for phase in self.phases)

    def key_at(self, length: int) -> bytes:
        """The namespace that the first `length` tokens belong to when they rest: `cache_key`, and the adapters up to there."""
        return self.exact_key_at(length) + (MOVED if self.moved else b"")

    def exact_key_at(self, length: int) -> bytes:
        """The same for what was computed where it is."""
        used = [phase for phase in self.phases if phase.start < max(1, length)]
        if len(used) == 1:
            return self.cache_key + used[0].adapters.mark
        return self.cache_key + b"".join(b"%d:%b;" % (phase.start, phase.adapters.mark) for phase in used)

    def _phase_at(self, position: int) -> Phase:
        return next(phase for phase in reversed(self.phases) if phase.start <= position)

    def drop(self, start: int, count: int) -> None:
        """Take tokens out of the middle, as a context shift does."""
        del self.tokens[start : start + count]
        self.phases = without(self.phases, start, count)
        self.n_dropped += count

    def prefix_shared_with(self, other: Sequence) -> int:
        """Length of the common prefix of both sequences: equal tokens under equal adapters, and whole runs."""
        common = common_prefix(self.tokens, other.tokens)
        differ = agreement(self.phases, other.phases)
        return self.runs.clip(common if differ is None else min(common, differ))


def common_prefix(a: list[int], b: list[int]) -> int:
    """How many leading items two lists share. Compares slices, which is much faster than item by item."""
    limit = min(len(a), len(b))
    if a[:limit] == b[:limit]:
        return limit
    low, high = 0, limit  # a[:low] equals b[:low], a[:high] does not equal b[:high]
    while high - low > 1:
        middle = (low + high) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle
    return low
