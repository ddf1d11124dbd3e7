"""Inputs made into vectors: many in a batch, whoever sent them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from puna.engine.packing import Input, PoolingQueue
from puna.engine.recorder import Recorder
from puna.errors import StartupError
from puna.ipc.frames import Embed, Pooled
from puna.llama.batch import Batch
from puna.llama.context import DecodeError
from puna.llama.lora import Lora
from puna.llama.pooled import PooledContext

SMOOTHING = 0.2
"""Weight of the newest observation in the mean time a token takes."""

MOST_INPUTS = 64
"""Most inputs in a batch, where the model sets no bound."""


@dataclass(frozen=True, slots=True)
class PoolingSize:
    """Lengths in tokens."""

    pack: int
    """A batch of several inputs, together."""
    limit: int
    """The longest input."""
    n_inputs: int = MOST_INPUTS
    """Most inputs in a batch."""

    def next_length(self, needed: int) -> int:
        """The length of a context in which `needed` tokens fit; never less than a pack."""
        length = self.pack
        while length < needed:
            length *= 2
        return max(self.pack, min(length, self.limit))


MakePooled = Callable[[int], PooledContext]
"""Makes a context with room for so many tokens. Raises `StartupError` for want of memory."""


@dataclass(slots=True)
class _Long:
    """An input that is computed in several batches, alone in the context meanwhile."""

    input: Input
    done: int = 0


class Pooler:
    """Requests in, vectors out, a batch at a time. Memory is empty between batches, but for that of a long input."""

    def __init__(
        self,
        make: MakePooled,
        size: PoolingSize,
        loras: Sequence[Lora] = (),
        *,
        recorder: Recorder,
        warn: Callable[[str], None],
    ) -> None:
        """`loras` are the loaded adapters, by id."""
        self._make = make
        self._size = size
        self._loras = loras
        self._recorder = recorder
        self._warn = warn
        self._length = size.next_length(1)
        self._context = make(self._length)
        self._batch = Batch(self._length)
        self._queue = PoolingQueue()
        self._long: _Long | None = None
        self._token_seconds = 0.0
        """Mean time a token takes; 0 while nothing was computed."""
        self.n_inputs = 0
        """Inputs done since the start; likewise the next two."""
        self.n_tokens = 0
        self.seconds = 0.0

    @property
    def width(self) -> int:
        """Floats in a vector."""
        return self._context.width

    @property
    def n_requests(self) -> int:
        """Requests that are not done."""
        return len(self._queue) + (self._long is not None)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return self._long is None and not len(self._queue)

    def submit(self, request: Embed) -> None:
        """Queue a request."""
        self._queue.add(request)

    def abort(self, request: int) -> None:
        """Forget a request; nothing more is sent of it."""
        self._queue.remove(request)
        if self._long is not None and self._long.input.request == request:
            self._end_long()

    def warm_up(self) -> None:
        """Compute two tokens and forget them: shows an illegal instruction before any client waits."""
        self._compute([(np.zeros(2, np.int32).tobytes(), 0)], ())
        self._context.clear()

    def step(self, seconds: float | None, beside: Sequence[int] = ()) -> tuple[Pooled, ...]:
        """Compute one batch and return what it brought. It should not take much longer than `seconds`, if those are given.

        `beside` are requests at risk while this runs that are not its own.
        """
        most = self._most(seconds)
        if self._long is None:
            inputs = self._queue.take(most, self._size.n_inputs)
            first = inputs[0]
            if first.n_tokens > self._length and not self._grow(first.n_tokens):
                return (self._fail(first, f"there is no memory for an input of {first.n_tokens} tokens"),)
            if first.n_tokens <= most or not self._context.can_continue:
                return self._run(inputs, beside)
            self._long = _Long(first)
        return self._go_on(self._long, most, beside)

    def _most(self, seconds: float | None) -> int:
        """Tokens of the next batch."""
        if seconds is None or not self._token_seconds:
            return self._size.pack
        return max(1, min(self._size.pack, int(seconds / self._token_seconds)))

    def _grow(self, needed: int) -> bool:
        """Make room for a longer input; False, with everything as before, when there is no memory for it."""
        before = self._length
        self._context.close()
        try:
            self._length = self._size.next_length(needed)
            self._context = self._make(self._length)
        except StartupError as error:
            self._warn(f"no memory for inputs of {self._length} tokens: {error}")
            self._length = before
            self._context = self._make(before)
        self._batch = Batch(self._length)
        return self._length >= needed

    def _run(self, inputs: list[Input], beside: Sequence[int]) -> tuple[Pooled, ...]:
        """A batch of whole inputs."""
        requests = list(dict.fromkeys(one.request for one in inputs))
        self._recorder.record("decode", [*requests, *beside])
        try:
            self._compute([(one.tokens, 0) for one in inputs], inputs[0].lora)
            vectors = self._vectors(inputs)
        except DecodeError as error:
            if len(inputs) == 1:
                return (self._fail(inputs[0], f"the engine could not compute this: {error}"),)
            self._queue.retry(inputs)
            return ()
        finally:
            self._context.clear()
            self._recorder.record("idle", ())
        self.n_inputs += len(inputs)
        done: dict[int, tuple[list[int], list[bytes]]] = {request: ([], []) for request in requests}
        for one, vector in zip(inputs, vectors, strict=True):
            done[one.request][0].append(one.index)
            done[one.request][1].append(vector)
        return tuple(Pooled(request, tuple(indices), tuple(found)) for request, (indices, found) in done.items())

    def _go_on(self, long: _Long, most: int, beside: Sequence[int]) -> tuple[Pooled, ...]:
        """The next part of a long input."""
        one = long.input
        count = min(most, one.n_tokens - long.done)
        self._recorder.record("decode", [one.request, *beside])
        try:
            self._compute([(one.tokens[4 * long.done : 4 * (long.done + count)], long.done)], one.lora)
            long.done += count
            last = long.done == one.n_tokens
            each = self._context.pooling == "none"
            vector = self._context.vectors(count).tobytes() if each else self._context.vector(0) if last else b""
        except DecodeError as error:
            self._end_long()
            return (self._fail(one, f"the engine could not compute this: {error}"),)
        finally:
            self._recorder.record("idle", ())
        if last:
            self._end_long()
            self.n_inputs += 1
        return (Pooled(one.request, (one.index,), (vector,), part=not last),)

    def _end_long(self) -> None:
        self._long = None
        self._context.clear()

    def _compute(self, pieces: Sequence[tuple[bytes, int]], lora: Sequence[tuple[int, float]]) -> None:
        """Compute tokens from a position on, a sequence each. Raises `DecodeError`.

        Adapters with an invocation wait for an answer to begin; here is none, so they do not apply.
        """
        self._context.use_adapters([(self._loras[id], scale) for id, scale in lora if not self._loras[id].invocation])
        self._batch.clear()
        for seat, (tokens, start) in enumerate(pieces):
            ids = np.frombuffer(tokens, np.int32)
            self._batch.add(ids, start, seat, n_logits=len(ids))
        begin = time.perf_counter()
        self._context.compute(self._batch)
        seconds = time.perf_counter() - begin
        self._recorder.decoded()
        mean = seconds / self._batch.n
        self._token_seconds += (mean - self._token_seconds) * (SMOOTHING if self._token_seconds else 1)
        self.n_tokens += self._batch.n
        self.seconds += seconds

    def _vectors(self, inputs: Sequence[Input]) -> list[bytes]:
        if self._context.pooling != "none":
            return [self._context.vector(seat) for seat in range(len(inputs))]
        rows = self._context.vectors(self._batch.n)
        ends = np.cumsum([one.n_tokens for one in inputs])
        return [rows[end - one.n_tokens : end].tobytes() for one, end in zip(inputs, ends, strict=True)]

    def _fail(self, one: Input, message: str) -> Pooled:
        """End a request because of one of its inputs."""
        self._queue.remove(one.request)
        return Pooled(one.request, error=f"input {one.index}: {message}")
