"""Stand-ins for the engine and its vocabulary: scripted answers, no model, no process."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from puna.types import (
    MEDIA,
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
    StopType,
    Timings,
    TokenProb,
)

SPECIAL = ("<s>", "</s>", "<|im_start|>", "<|im_end|>")
BOS, EOS, IM_START, IM_END = range(256, 260)
FIM = ("<PRE>", "<SUF>", "<MID>", "<REP>", "<SEP>")
PRE, SUF, MID, REP, SEP = range(260, 265)

FACTS = ModelFacts(
    path="/models/tiny-test.gguf",
    description="test 1M F32",
    architecture="test",
    n_params=1_000_000,
    n_bytes=4_000_000,
    n_vocab=260,
    vocab_type=1,
    n_embd=64,
    n_layer=2,
    n_ctx_train=2048,
    n_ctx=1024,
    n_slots=4,
    layout="split",
    flash_attention=False,
    n_threads=1,
    n_threads_batch=1,
    chat_template=None,
    metadata={},
    can_cut=True,
    has_decoder=True,
    engine="fake 1.0",
    safe_mode=False,
)


class FakeTokenizer:
    """One token a byte, four control tokens, and perhaps those for filling in the middle, with or without file tokens."""

    bos = BOS
    eos = EOS

    def __init__(self, *, add_bos: bool = False, n_fim: int = 0) -> None:
        """`n_fim`: how many of `FIM` it has."""
        self.add_bos = add_bos
        self.n_tokens = 260 + n_fim
        self._special = SPECIAL + FIM[:n_fim]
        ids = (*range(260, 260 + n_fim), *(-1,) * (5 - n_fim))
        self.fim = FimTokens(prefix=ids[0], suffix=ids[1], middle=ids[2], repo=ids[3], file=ids[4])

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        tokens = [BOS] if add_special and self.add_bos else []
        rest = text
        while rest:
            special = next((s for s in self._special if parse_special and rest.startswith(s)), None)
            if special is not None:
                tokens.append(256 + self._special.index(special))
                rest = rest[len(special) :]
            else:
                tokens += rest[0].encode()
                rest = rest[1:]
        return tokens

    def piece(self, token: int, *, special: bool = False) -> bytes:
        if token < 256:
            return bytes([token])
        return self._special[token - 256].encode() if special else b""

    def detokenize(self, tokens: Sequence[int]) -> str:
        pieces = (b"<__media__>" if token == MEDIA else self.piece(token, special=True) for token in tokens)
        return b"".join(pieces).decode("utf-8", "replace")

    def is_eog(self, token: int) -> bool:
        return token in (EOS, IM_END)

    def text(self, token: int) -> str:
        return self._special[token - 256] if token >= 256 else chr(token)

    def special_texts(self) -> list[str]:
        return list(self._special)

    def added_texts(self) -> list[str]:
        return []


Item = Chunk | Exception | float | asyncio.Event
"""A chunk to send, an error to raise, seconds to wait, or what to wait for."""


def say(
    *texts: str,
    stop_type: StopType = "eos",
    stopping_word: str = "",
    probs: bool = False,
    logprob: float = -0.5,
    n_prompt: int = 7,
    cache_n: int = 3,
    pause: float = 0.0,
) -> list[Item]:
    """A script that sends these texts as one chunk each, then the end."""
    items: list[Item] = []
    n = 0
    for text in texts:
        tokens = tuple(text.encode())
        n += len(tokens)
        entries = tuple(TokenProb(t, logprob, ((t, logprob), ((t + 1) % 256, -1.5))) for t in tokens) if probs else ()
        if pause:
            items.append(pause)
        items.append(Chunk(text=text, tokens=tokens, probs=entries, slot=0))
    timings = Timings(cache_n=cache_n, prompt_n=n_prompt - cache_n, prompt_ms=2.0, predicted_n=n, predicted_ms=4.0, queue_ms=1.0)
    items.append(Chunk(slot=0, timings=timings, stop_type=stop_type, stopping_word=stopping_word))
    return items


class FakeStream:
    """Plays a script."""

    def __init__(self, generation: Generation, script: Iterable[Item]) -> None:
        self.generation = generation
        self.closed = False
        self.finished = False
        self.thinking_ended = False
        self._script = iter(script)

    def __aiter__(self) -> FakeStream:
        return self

    async def __anext__(self) -> Chunk:
        for item in self._script:
            if isinstance(item, Chunk):
                return item
            if isinstance(item, Exception):
                raise item
            if isinstance(item, asyncio.Event):
                await item.wait()
            else:
                await asyncio.sleep(item)
        self.finished = True
        raise StopAsyncIteration

    def end_thinking(self) -> None:
        self.thinking_ended = True

    async def aclose(self) -> None:
        self.closed = True


class FakeVectors:
    """Has all vectors at once."""

    def __init__(self, vectors: list[list[float] | Exception], sizes: list[int]) -> None:
        self.sizes = sizes
        self._vectors = vectors

    async def all(self) -> list[bytes]:
        found: list[bytes] = []
        for vector in self._vectors:
            if isinstance(vector, Exception):
                raise vector
            found.append(array("f", vector).tobytes())
        return found


@dataclass
class FakeEngine:
    """Answers every generation with the script for its number, or with `script`; `refuse` makes admission fail."""

    facts: ModelFacts | None = FACTS
    state: str = "ready"
    failure: str = ""
    restarts: int = 0
    stats: EngineStats = field(default_factory=EngineStats)
    slots: tuple[SlotState, ...] = tuple(SlotState(id=id) for id in range(4))
    tokenizer: FakeTokenizer = field(default_factory=FakeTokenizer)
    script: Callable[[int], Iterable[Item]] = lambda _: say("Hello", " world")
    refuse: Callable[[Generation, int], Exception | None] = lambda _generation, _number: None
    streams: list[FakeStream] = field(default_factory=list)
    every_token: list[bool] = field(default_factory=list)
    tasks: dict[int, SlotTask] = field(default_factory=dict)
    actions: list[tuple[SlotAction, int, str]] = field(default_factory=list)
    outcome: SlotOutcome = field(default_factory=SlotOutcome)
    embedded: list[list[list[int]]] = field(default_factory=list)
    """The inputs of each call of `embed`."""
    embedded_with: list[tuple[tuple[int, float], ...]] = field(default_factory=list)
    """The adapters of each."""
    embedded_media: list[Sequence[Sequence[Media]]] = field(default_factory=list)
    vector: Callable[[list[int]], list[float] | Exception] = lambda tokens: [float(len(tokens)), 1.0, 0.0, 0.0]
    """What an input becomes."""

    @property
    def in_flight(self) -> int:
        return sum(not (stream.closed or stream.finished) for stream in self.streams)

    @property
    def generations(self) -> list[Generation]:
        return [stream.generation for stream in self.streams]

    @property
    def last(self) -> Generation:
        return self.streams[-1].generation

    def slot_task(self, slot: int) -> SlotTask | None:
        return self.tasks.get(slot)

    async def act_on_slot(self, action: SlotAction, slot: int, path: str = "") -> SlotOutcome:
        self.actions.append((action, slot, path))
        return self.outcome

    def embed(
        self,
        inputs: Sequence[Sequence[int]],
        *,
        lora: Sequence[tuple[int, float]] = (),
        media: Sequence[Sequence[Media]] = (),
    ) -> FakeVectors:
        self.embedded_with.append(tuple(lora))
        self.embedded_media.append(media)
        self.embedded.append([list(tokens) for tokens in inputs])
        return FakeVectors([self.vector(list(tokens)) for tokens in inputs], list(map(len, inputs)))

    def generate(self, generation: Generation, *, every_token: bool = False) -> FakeStream:
        number = len(self.streams)
        error = self.refuse(generation, number)
        if error is not None:
            raise error
        stream = FakeStream(generation, self.script(number))
        self.streams.append(stream)
        self.every_token.append(every_token)
        return stream
