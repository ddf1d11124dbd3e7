"""What the service needs from the layers that it must not know: an engine, its vocabulary, and someone who counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from puna.types import (
    Chunk,
    EngineStats,
    FimTokens,
    Generation,
    Media,
    ModelFacts,
    SlotAction,
    SlotOutcome,
    SlotState,
    SlotTask,
    Timings,
)


class Tokenizer(Protocol):
    """A loaded model's vocabulary. Safe to use from any thread."""

    @property
    def n_tokens(self) -> int: ...

    @property
    def bos(self) -> int:
        """Token id, -1 where the model has none; likewise `eos`."""
        ...

    @property
    def eos(self) -> int: ...

    @property
    def add_bos(self) -> bool:
        """Whether the model wants BOS before a text."""
        ...

    @property
    def fim(self) -> FimTokens:
        """The tokens for filling in the middle, as far as there are any."""
        ...

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]: ...

    def piece(self, token: int, *, special: bool = False) -> bytes:
        """The bytes a token stands for; control tokens are empty unless `special`."""
        ...

    def detokenize(self, tokens: Sequence[int]) -> str:
        """The text of `tokens`, control tokens included as their texts."""
        ...

    def is_eog(self, token: int) -> bool: ...

    def text(self, token: int) -> str: ...

    def special_texts(self) -> list[str]:
        """Texts of control tokens."""
        ...

    def added_texts(self) -> list[str]:
        """Texts of user-defined tokens, which are found in any text."""
        ...


class Stream(Protocol):
    """One generation's chunks, in order. Raises a `PunaError` where the generation fails."""

    def __aiter__(self) -> Stream: ...

    async def __anext__(self) -> Chunk: ...

    @property
    def end_thinking(self) -> Callable[[], None]:
        """Let the answer think no further, if its generation says what thinking is."""
        ...

    async def aclose(self) -> None:
        """Stop the generation if it still runs. May be called more than once."""
        ...


class Vectors(Protocol):
    """What a request's inputs become."""

    @property
    def sizes(self) -> list[int]:
        """Tokens of each input; what media take is counted once an input is done."""
        ...

    async def all(self) -> list[bytes]:
        """Wait for all of them, in the inputs' order, each as 32-bit floats. Raises a `PunaError` where that fails.

        Cancelling stops the work.
        """
        ...


class Engine(Protocol):
    """The server's end of one worker."""

    @property
    def facts(self) -> ModelFacts | None:
        """None until the model is loaded; kept while a worker restarts."""
        ...

    @property
    def state(self) -> str:
        """`loading`, `ready`, `restarting`, `failed` or `stopping`."""
        ...

    @property
    def failure(self) -> str:
        """Why the model could not be loaded; empty unless `state` is `failed`."""
        ...

    @property
    def stats(self) -> EngineStats: ...

    @property
    def slots(self) -> Sequence[SlotState]: ...

    def slot_task(self, slot: int) -> SlotTask | None:
        """The request that a slot works on or last worked on."""
        ...

    async def act_on_slot(self, action: SlotAction, slot: int, path: str = "") -> SlotOutcome:
        """Save what an idle slot last held to a file, restore it from there, or erase it. Raises a `PunaError`."""
        ...

    @property
    def in_flight(self) -> int:
        """Requests that were admitted and have not ended."""
        ...

    @property
    def restarts(self) -> int:
        """How often a worker had to be replaced."""
        ...

    @property
    def tokenizer(self) -> Tokenizer:
        """Only once `facts` are there."""
        ...

    def generate(self, generation: Generation, *, every_token: bool = False) -> Stream:
        """Admit a generation, or raise `QueueFull`, `Unavailable`, `InvalidRequest` or `ContextExceeded` at once.

        With `every_token` each token makes a chunk, even while its text is held back.
        """
        ...

    def embed(
        self,
        inputs: Sequence[Sequence[int]],
        *,
        lora: Sequence[tuple[int, float]] = (),
        media: Sequence[Sequence[Media]] = (),
    ) -> Vectors:
        """Admit token ids to be made into vectors or scores with these adapters (id, scale), or raise as `generate` does."""
        ...


class Observer(Protocol):
    """Counts what was served."""

    def finished(self, timings: Timings, first_token: float | None) -> None:
        """A generation ended by itself; `first_token` is the time in seconds from admission to its first token."""
        ...


class Nobody:
    """An observer that counts nothing."""

    def finished(self, timings: Timings, first_token: float | None) -> None:
        return None
