"""Inputs made into vectors: many in a batch, whoever sent them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from puna.engine.lanes import Lane, Lanes
from puna.engine.packing import TOKEN, Input, PoolingQueue
from puna.engine.pooling_choice import PoolingSize
from puna.engine.recorder import Recorder
from puna.errors import StartupError
from puna.ipc.frames import Embed, Pooled
from puna.llama.context import DecodeError

SMOOTHING = 0.2
"""Weight of the newest observation in the mean time a token takes."""

MakePooled = Callable[[int], Lane]
"""Makes a lane with room for so many tokens. Raises `StartupError` for want of memory."""


@dataclass(slots=True)
class _Long:
    """An input that is computed in several batches, alone in the first lane meanwhile."""

    input: Input
    done: int = 0


class Pooler:
    """Requests in, vectors out, a batch a lane at a time. Memory is empty between batches, but for that of a long input."""

    def __init__(
        self,
        make: MakePooled,
        size: PoolingSize,
        *,
        n_lanes: int = 1,
        n_threads: int,
        recorder: Recorder,
        warn: Callable[[str], None],
    ) -> None:
        self._make = make
        self._size = size
        self._recorder = recorder
        self._warn = warn
        self._lanes = Lanes([make(size.first) for _ in range(n_lanes)], n_threads)
        self._queue = PoolingQueue()
        self._long: _Long | None = None
        self._token_seconds = 0.0
        """Mean time a token takes; 0 while nothing was computed."""
        self.n_inputs = 0
        """Inputs done since the start; likewise the next two."""
        self.n_tokens = 0
        self.seconds = 0.0

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
        """Compute a little and forget it."""
        self._lanes.warm_up()

    def step(self, seconds: float | None, beside: Sequence[int] = ()) -> tuple[Pooled, ...]:
        """Compute a batch a lane and return what it brought. It should not take much longer than `seconds`, if given.

        `beside` are requests at risk while this runs that are not its own.
        """
        most = self._most(seconds)
        if self._long is None:
            n_lanes = len(self._lanes)
            inputs = self._queue.take(most * n_lanes, self._size.n_inputs * n_lanes, most_each=self._size.first)
            first = inputs[0]
            if first.n_tokens > self._lanes.first.room and not self._grow(first.n_tokens):
                return (self._fail(first, f"there is no memory for an input of {first.n_tokens} tokens"),)
            if first.n_tokens <= most or not self._lanes.first.context.can_continue:
                return self._run(inputs, beside)
            self._long = _Long(first)
        return self._go_on(self._long, min(most, self._size.first), beside)

    def _most(self, seconds: float | None) -> int:
        """Tokens of a lane's next batch."""
        if seconds is None or not self._token_seconds:
            return self._size.pack
        return max(1, min(self._size.pack, int(seconds / self._token_seconds)))

    def _grow(self, needed: int) -> bool:
        """Make room for a longer input; False, with everything as before, when there is no memory for it."""
        before = self._lanes.first.room
        wanted = self._size.next_length(needed)
        self._lanes.first.context.close()
        try:
            self._lanes.first = self._make(wanted)
            return True
        except StartupError as error:
            self._warn(f"no memory for inputs of {wanted} tokens: {error}")
            self._lanes.first = self._make(before)
            return False

    def _run(self, inputs: list[Input], beside: Sequence[int]) -> tuple[Pooled, ...]:
        """A batch of whole inputs in each lane."""
        requests = list(dict.fromkeys(one.request for one in inputs))
        self._recorder.record("decode", [*requests, *beside])
        begin = time.perf_counter()
        shares = self._lanes.run(inputs)
        self._note(sum(one.n_tokens for one in inputs), time.perf_counter() - begin)
        done: dict[int, tuple[list[int], list[bytes]]] = {request: ([], []) for request in requests}
        failed: list[Pooled] = []
        for share, result in shares:
            if isinstance(result, DecodeError):
                failed += self._failed(share, result)
                continue
            self.n_inputs += len(share)
            for one, vector in zip(share, result, strict=True):
                done[one.request][0].append(one.index)
                done[one.request][1].append(vector)
        found = (Pooled(request, tuple(indices), tuple(vectors)) for request, (indices, vectors) in done.items() if indices)
        return (*found, *failed)

    def _failed(self, inputs: list[Input], error: DecodeError) -> list[Pooled]:
        """A batch could not be computed: its inputs are tried alone, and one that was alone ends its request."""
        if len(inputs) > 1:
            self._queue.retry(inputs)
            return []
        return [self._fail(inputs[0], f"the engine could not compute this: {error}")]

    def _go_on(self, long: _Long, most: int, beside: Sequence[int]) -> tuple[Pooled, ...]:
        """The next part of a long input."""
        one = long.input
        count = min(most, one.n_tokens - long.done)
        last = long.done + count == one.n_tokens
        self._recorder.record("decode", [one.request, *beside])
        begin = time.perf_counter()
        try:
            self._lanes.alone(one.tokens[TOKEN * long.done : TOKEN * (long.done + count)], long.done, one.lora)
            vector = self._lanes.first.part(count, last=last)
        except DecodeError as error:
            self._end_long()
            return (self._fail(one, f"the engine could not compute this: {error}"),)
        finally:
            self._note(count, time.perf_counter() - begin)
        long.done += count
        if last:
            self._end_long()
            self.n_inputs += 1
        return (Pooled(one.request, (one.index,), (vector,), part=not last),)

    def _end_long(self) -> None:
        self._long = None
        self._lanes.first.context.clear()

    def _note(self, n_tokens: int, seconds: float) -> None:
        """Count what was computed, and learn from how long it took."""
        self._recorder.decoded()
        self._recorder.record("idle", ())
        mean = seconds / n_tokens
        self._token_seconds += (mean - self._token_seconds) * (SMOOTHING if self._token_seconds else 1)
        self.n_tokens += n_tokens
        self.seconds += seconds

    def _fail(self, one: Input, message: str) -> Pooled:
        """End a request because of one of its inputs."""
        self._queue.remove(one.request)
        return Pooled(one.request, error=f"input {one.index}: {message}")
