"""Inputs made into vectors: many in a batch, whoever sent them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass

from puna.engine.lanes import Lane, Lanes
from puna.engine.media.reader import MediaFault, MediaReader
from puna.engine.media.runs import Run, Runs
from puna.engine.packing import TOKEN, Input, PoolingQueue
from puna.engine.pooling_choice import PoolingSize
from puna.engine.recorder import Recorder
from puna.errors import InvalidRequest, StartupError
from puna.ipc.frames import Embed, Pooled
from puna.llama.batch import VectorBatch
from puna.llama.context import DecodeError, FloatArray

MEDIA_WAIT = 0.02
"""Seconds that a step waits for media to be made ready when there is nothing else to do."""

SMOOTHING = 0.2
"""Weight of the newest observation in the mean time a token takes."""

MakePooled = Callable[[int], Lane]
"""Makes a lane with room for so many tokens. Raises `StartupError` for want of memory."""


@dataclass(slots=True)
class _Long:
    """An input that is computed in several batches, alone in the first lane meanwhile."""

    input: Input
    done: int = 0
    encoded: tuple[bytes, FloatArray] | None = None
    """The name of the run that is being read, and its vectors."""


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
        media: MediaReader | None = None,
    ) -> None:
        self._make = make
        self._size = size
        self._recorder = recorder
        self._warn = warn
        self._lanes = Lanes([make(size.first) for _ in range(n_lanes)], n_threads)
        self._queue = PoolingQueue()
        self._media = media
        self._preparing: dict[int, tuple[Embed, Future[None]]] = {}
        """Requests whose media are being made ready."""
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
        return len(self._queue) + (self._long is not None) + len(self._preparing)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self.n_requests

    @property
    def takes_media(self) -> bool:
        """Whether inputs may hold pictures and sounds: they come in several batches."""
        return self._media is not None and self._lanes.first.context.can_continue

    def submit(self, request: Embed) -> None:
        """Queue a request. The server sends media only where they are taken."""
        if any(request.media) and self._media is not None:
            begun = self._media.begin(request.id, [one for media in request.media for one in media])
            self._preparing[request.id] = (request, begun)
        else:
            self._queue.add(request)

    def abort(self, request: int) -> None:
        """Forget a request; nothing more is sent of it."""
        self._queue.remove(request)
        if self._preparing.pop(request, None) is not None and self._media is not None:
            self._media.forget(request)
        if self._long is not None and self._long.input.request == request:
            self._end_long()

    def warm_up(self) -> None:
        """Compute a little and forget it."""
        self._lanes.warm_up()

    def step(self, seconds: float | None, beside: Sequence[int] = ()) -> tuple[Pooled, ...]:
        """Compute a batch a lane and return what it brought. It should not take much longer than `seconds`, if given.

        `beside` are requests at risk while this runs that are not its own.
        """
        if refused := self._queue_ready():
            return refused
        most = self._most(seconds)
        if self._long is None:
            if not len(self._queue):
                return ()
            n_lanes = len(self._lanes)
            inputs = self._queue.take(most * n_lanes, self._size.n_inputs * n_lanes, most_each=self._size.first)
            first = inputs[0]
            if first.n_tokens > self._lanes.first.room and not self._grow(first.n_tokens):
                return (self._fail(first, f"there is no memory for an input of {first.n_tokens} tokens"),)
            if not first.runs and (first.n_tokens <= most or not self._lanes.first.context.can_continue):
                return self._run(inputs, beside)
            self._long = _Long(first)
        return self._go_on(self._long, min(most, self._size.first), beside)

    def _queue_ready(self) -> tuple[Pooled, ...]:
        """Let requests queue whose media are ready; those that cannot be computed end."""
        if self._preparing and not len(self._queue) and self._long is None:
            wait([begun for _, begun in self._preparing.values()], MEDIA_WAIT, return_when=FIRST_COMPLETED)
        refused: list[Pooled] = []
        for id, (request, begun) in list(self._preparing.items()):
            if begun.done():
                del self._preparing[id]
                try:
                    self._queue.add(request, self._expand(request))
                except InvalidRequest as error:
                    refused.append(Pooled(id, error=error.message, error_kind="invalid"))
                except MediaFault as error:
                    refused.append(Pooled(id, error=str(error)))
        return tuple(refused)

    def _expand(self, request: Embed) -> list[tuple[list[int], Runs]]:
        assert self._media is not None
        prompts = (
            (memoryview(tokens).cast("i"), len(media)) for tokens, media in zip(request.inputs, request.media, strict=True)
        )
        expanded = self._media.finish(request.id, prompts)
        for index, (tokens, _) in zip(request.indices, expanded, strict=True):
            if len(tokens) > self._size.limit:
                raise InvalidRequest(
                    f"input {index} has {len(tokens)} tokens with its media; the model can take {self._size.limit}"
                )
        return expanded

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
        """The next part of a long input, or of one with media; nothing where that part had to be encoded first."""
        one = long.input
        count = min(most, one.n_tokens - long.done, one.runs.alike(long.done))
        run = one.runs.at(long.done)
        if run is not None:
            if not run.patch.causal:
                count = run.patch.n_tokens
            try:
                if not self._has_vectors(long, run):
                    return ()
            except MediaFault as error:
                self._end_long()
                return (self._fail(one, f"the engine could not encode this: {error}"),)
        last = long.done + count == one.n_tokens
        self._recorder.record("decode", [one.request, *beside])
        begin = time.perf_counter()
        try:
            if run is None:
                tokens = one.tokens[TOKEN * long.done : TOKEN * (long.done + count)]
                self._lanes.alone(tokens, one.runs.position(long.done), one.lora)
            else:
                self._read(long, run, count)
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
        return (Pooled(one.request, (one.index,), (vector,), part=not last, n_tokens=one.n_tokens if one.runs else 0),)

    def _has_vectors(self, long: _Long, run: Run) -> bool:
        """Whether a run's vectors are there; if not, this step encodes them."""
        if long.encoded is not None and long.encoded[0] == run.name:
            return True
        assert self._media is not None
        if (known := self._media.known(run)) is None:
            self._recorder.record("encode", (long.input.request,))
            known = self._media.encode(run)
            self._recorder.record("idle", ())
            long.encoded = (run.name, known)
            return False
        long.encoded = (run.name, known)
        return True

    def _read(self, long: _Long, run: Run, count: int) -> None:
        """Compute the next vectors of a run."""
        assert long.encoded is not None
        part = slice(long.done - run.start, long.done - run.start + count)
        positions = run.patch.positions(run.position)[:, part]
        batch = VectorBatch(long.encoded[1][part], positions, 0, n_logits=count)
        self._lanes.vectors_alone(batch, long.input.lora, causal=run.patch.causal)

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
