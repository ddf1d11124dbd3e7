"""Whole answers, for clients that do not stream."""

from __future__ import annotations

from dataclasses import dataclass, field

from puna.service.running import Running
from puna.types import Chunk, Generation, Progress, StopType, Timings, TokenProb


@dataclass(slots=True)
class Answer:
    """What one generation has brought so far. `feed` its chunks in order."""

    index: int
    generation: Generation
    parts: list[str] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    probs: list[TokenProb] = field(default_factory=list)
    prompt_probs: list[TokenProb] = field(default_factory=list)
    """Of the prompt's tokens from the second one on, as far as they have come."""
    progress: Progress | None = None
    """How far the prompt had been read when that was last reported."""
    slot: int = -1
    timings: Timings = field(default_factory=Timings)
    stop_type: StopType = "none"
    """`none` for an answer that was cut short because a newer request took its place."""
    stopping_word: str = ""
    truncated: bool = False
    n_reasoning: int = 0
    """Tokens of thinking, its tags included."""

    def feed(self, chunk: Chunk) -> None:
        """Take in the next chunk."""
        if chunk.text:
            self.parts.append(chunk.text)
        self.tokens.extend(chunk.tokens)
        self.probs.extend(chunk.probs)
        self.prompt_probs.extend(chunk.prompt_probs)
        self.progress = chunk.progress or self.progress
        if chunk.slot >= 0:
            self.slot = chunk.slot
        if chunk.timings is not None:
            self.timings = chunk.timings
        self.stop_type = chunk.stop_type
        self.stopping_word = chunk.stopping_word
        self.truncated = chunk.truncated

    @property
    def text(self) -> str:
        return "".join(self.parts)

    @property
    def n_prompt(self) -> int:
        """Tokens of the prompt; what its media take is known from the first figures on."""
        n_read = self.timings.cache_n + self.timings.prompt_n if self.generation.media else 0
        return n_read or len(self.generation.prompt)

    @property
    def n_predicted(self) -> int:
        """Tokens produced, the end-of-generation token not among them."""
        return len(self.tokens)


async def collect(running: Running) -> list[Answer]:
    """Wait for every generation to end, or to be cut. Raises what any of them raises; nothing runs any more afterwards."""
    answers = [Answer(index, generation) for index, generation in enumerate(running.generations)]
    try:
        async for batch in running:
            for index, chunk in batch:
                answers[index].feed(chunk)
    finally:
        await running.aclose()
    return answers
