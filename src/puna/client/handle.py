"""The server's handle on one model: admits requests and hands on what they bring, whatever becomes of the worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, Literal, Protocol, TypeVar

from puna.client import admission
from puna.client.assembly import Assembly
from puna.client.probation import Probation
from puna.client.process import COMMAND, Exit
from puna.client.requests import EmbeddingRequest, GenerationRequest
from puna.client.slots import SlotActions, SlotTable
from puna.client.stream import Stream
from puna.client.supervisor import Supervisor
from puna.client.vectors import Vectors
from puna.config import EngineSettings
from puna.errors import PunaError, QueueFull, RequestKilledEngine, ServerFault, Unavailable
from puna.ipc.channel import FrameError
from puna.ipc.frames import Abort, EndThinking, Output, Pooled, SlotDone, Step
from puna.log import logger
from puna.types import EngineStats, Generation, Media, ModelFacts, SlotAction, SlotOutcome, SlotState, SlotTask

RETRY_FAILED = 5
"""Seconds after which a model that could not be loaded may have been."""


class Tokenizer(Protocol):
    """What is needed of a vocabulary here."""

    def piece(self, token: int, /, *, special: bool = False) -> bytes:
        """The bytes that a token adds to the text; of control tokens their own texts if `special`, else none."""
        ...


T = TypeVar("T", bound=Tokenizer)


class EngineClient(Generic[T]):
    """One model behind one worker at a time. Everything here belongs to the event loop that `start` runs on.

    When the worker dies another one is started, and every generation goes on where it was.
    """

    def __init__(
        self,
        settings: EngineSettings,
        load_tokenizer: Callable[[str], T],
        *,
        max_queue: int = 512,
        command: Sequence[str] = COMMAND,
    ) -> None:
        """`load_tokenizer` reads the vocabulary of a model file; it runs on a thread, once a worker has loaded the file.

        `max_queue` requests may wait beyond those that run. `command` starts a worker.
        """
        self.facts: ModelFacts | None = None
        """None until the model is loaded; kept while a worker restarts."""
        self.stats = EngineStats()
        """The present worker's own."""
        self._load_tokenizer = load_tokenizer
        self._tokenizer: T | None = None
        self._max_queue = max_queue
        self._supervisor = Supervisor(settings, command, self)
        self._slots = SlotTable()
        self._actions = SlotActions(self._supervisor.send)
        self._probation = Probation()
        self._requests: dict[int, GenerationRequest | EmbeddingRequest] = {}
        self._next_id = 0
        self._mean_seconds = 1.0
        self._stopping = False
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def state(self) -> Literal["loading", "ready", "restarting", "failed", "stopping"]:
        """`failed` says that the model cannot be loaded, `stopping` that `drain` or `stop` was called."""
        return "stopping" if self._stopping else self._supervisor.state

    @property
    def failure(self) -> str:
        """Why the model could not be loaded; empty unless `state` is `failed`."""
        return self._supervisor.failure

    @property
    def progress(self) -> float:
        """The share of the weights that is loaded, 0 to 1."""
        return self._supervisor.progress

    @property
    def slots(self) -> tuple[SlotState, ...]:
        """Every slot, the idle ones too; empty before the model is loaded."""
        return self._slots.states

    def slot_task(self, slot: int) -> SlotTask | None:
        """The request that a slot works on or last worked on, if any since the worker's start."""
        return self._slots.task(slot)

    async def act_on_slot(self, action: SlotAction, slot: int, path: str = "") -> SlotOutcome:
        """Save a slot's prompt to `path`, restore it from there, or erase it, once the slot is idle.

        Raises Unavailable while there is no worker, InvalidRequest for a file or a slot that is not fit for it, ServerFault.
        """
        if self.state != "ready":
            raise Unavailable("the server is shutting down" if self._stopping else "the engine is not ready")
        return await self._actions.run(action, slot, path)

    @property
    def restarts(self) -> int:
        """How often a dead worker was replaced."""
        return self._supervisor.restarts

    @property
    def worker_pid(self) -> int | None:
        """The process id of the present worker."""
        return self._supervisor.pid

    @property
    def in_flight(self) -> int:
        """Requests of any kind that were admitted and have not ended."""
        return len(self._requests)

    @property
    def tokenizer(self) -> T:
        """The model's vocabulary. Raises Unavailable before there are `facts`."""
        if self._tokenizer is None:
            raise Unavailable("the model is still being loaded")
        return self._tokenizer

    async def start(self, on_loading: Callable[[float], None] | None = None) -> None:
        """Start a worker and wait until the model is loaded. `on_loading` gets the share loaded so far.

        Raises StartupError, with the reason in words, when it cannot be loaded. Cancelling ends the worker.
        """
        await self._supervisor.start(on_loading)

    def generate(
        self, generation: Generation, *, every_token: bool = False, piece: Callable[[int], bytes] | None = None
    ) -> Stream:
        """Admit a generation and start it.

        With `every_token` each step's tokens make a chunk, even while their text is held back. `piece` replaces the
        tokenizer's, for callers that want to see control tokens.

        Raises at once: Unavailable while there is nothing to generate with, QueueFull beyond the bound, ContextExceeded
        for a prompt that leaves no room, InvalidRequest for one that is no prompt at all.
        """
        admission.check(generation, self._admit())
        request = GenerationRequest(Assembly(generation, piece or self._pieces(generation), every_token=every_token))
        id = self._begin(request)
        return Stream(id, request.feed, partial(self._abort, id), partial(self._end_thinking, id))

    def embed(
        self,
        inputs: Sequence[Sequence[int]],
        *,
        lora: Sequence[tuple[int, float]] = (),
        media: Sequence[Sequence[Media]] = (),
    ) -> Vectors:
        """Admit token ids to be made into vectors, or scored, all of them together, with these adapters (id, scale).

        `media` is nothing, or what each input has at its `MEDIA`. Raises as `generate` does; what is wrong with an input is
        said with its number.
        """
        admission.check_inputs(inputs, lora, self._admit(), media)
        request = EmbeddingRequest(inputs, lora, media)
        return Vectors(request, partial(self._abort, self._begin(request)))

    def _begin(self, request: GenerationRequest | EmbeddingRequest) -> int:
        if not admission.media_fits(request.media_bytes, (other.media_bytes for other in self._requests.values())):
            raise QueueFull("the pictures and sounds of the requests that wait take all the memory that they may have")
        id = self._next_id
        self._next_id += 1
        self._requests[id] = request
        self._empty.clear()
        self._probation.arrived(id)
        self._submit()
        return id

    def _pieces(self, generation: Generation) -> Callable[[int], bytes]:
        """What each token adds to the text, for preserved ones their own texts."""
        tokenizer, preserved = self.tokenizer, frozenset(generation.preserved_tokens)
        if not preserved:
            return tokenizer.piece
        return lambda token: tokenizer.piece(token, special=token in preserved)

    def _admit(self) -> ModelFacts:
        """The model's facts, if another request may come in."""
        if self._stopping:
            raise Unavailable("the server is shutting down")
        if self.state == "failed":
            raise Unavailable(f"the model could not be loaded: {self.failure}", retry_after=RETRY_FAILED)
        if self.facts is None:
            raise Unavailable("the model is still being loaded")
        if len(self._requests) >= self.facts.n_slots + self._max_queue:
            raise QueueFull(
                f"all {self.facts.n_slots} slots are busy and the queue is full ({self._max_queue} requests)",
                retry_after=admission.retry_after(self._mean_seconds, self.facts.n_slots),
            )
        return self.facts

    async def drain(self, timeout: float) -> int:
        """Admit nothing more and wait up to `timeout` seconds for what runs; return how many did not end in time."""
        self._stopping = True
        try:
            await asyncio.wait_for(self._empty.wait(), timeout)
        except asyncio.TimeoutError:
            logger.warning("%d answers did not end within %g s", len(self._requests), timeout)
        return len(self._requests)

    async def stop(self) -> None:
        """End the answers that still run, with Unavailable, and the worker. May be called more than once."""
        self._stopping = True
        self._end_all(Unavailable("the server is shutting down"))
        self._actions.fail(Unavailable("the server is shutting down"))
        await self._supervisor.stop()

    def _abort(self, id: int) -> None:
        """Nobody wants this answer any more; nothing happens if it has ended."""
        if id in self._requests:
            self._end(id)
            self._supervisor.send(Abort(id))
            self._submit()

    def _end_thinking(self, id: int) -> None:
        """Let this answer think no further; nothing happens if it has ended."""
        request = self._requests.get(id)
        if isinstance(request, GenerationRequest) and not request.assembly.end_thinking:
            request.assembly.end_thinking = True
            self._supervisor.send(EndThinking(id))

    def _end(self, id: int, error: PunaError | None = None) -> None:
        self._requests.pop(id).close(error)
        self._probation.ended(id)
        if not self._requests:
            self._empty.set()

    def _end_all(self, error: PunaError) -> None:
        for id in list(self._requests):
            self._end(id, error)

    def _submit(self) -> None:
        """Give the worker, once it is ready, the requests that it may have now."""
        if self._supervisor.state != "ready" or self.facts is None:
            return
        while due := self._probation.due():
            for id in due:
                frame = self._requests[id].frame(id, self.facts)
                if frame is None:
                    self._end(id)
                    continue
                try:
                    self._supervisor.send(frame)
                except FrameError as error:
                    self._end(id, error)

    async def loaded(self, facts: ModelFacts) -> None:
        """A worker has the model: read the vocabulary, which is safe now that a process has survived the file."""
        if self._tokenizer is None:
            loop = asyncio.get_running_loop()
            self._tokenizer = await loop.run_in_executor(None, self._load_tokenizer, facts.path)
        self.facts = facts
        self._rest(facts)

    def _rest(self, facts: ModelFacts) -> None:
        self._slots.reset(facts.n_slots)
        self.stats = EngineStats()

    def ready(self) -> None:
        """The worker takes work."""
        self._submit()

    def stepped(self, step: Step) -> bool:
        """Hand on what a step brought; whether that was progress for any request."""
        self.stats = step.stats
        self._slots.take(step.slots, self._assembly)
        progress = False
        for slot in step.slots:
            if slot.busy and slot.n_prompt_done < slot.n_prompt:
                progress |= self._probation.read(slot.request, slot.n_prompt_done)
        for output in step.outputs:
            request = self._requests.get(output.id)
            if isinstance(request, GenerationRequest):
                self._put(request, output)
                progress |= bool(output.tokens) or output.end != "none"
        for pooled in step.pooled:
            embedding = self._requests.get(pooled.id)
            if isinstance(embedding, EmbeddingRequest):
                self._pooled(embedding, pooled)
                progress = True
        self._submit()
        return progress

    def slot_done(self, answer: SlotDone) -> None:
        """A slot job has ended."""
        self._actions.done(answer)

    def _assembly(self, id: int) -> Assembly | None:
        request = self._requests.get(id)
        return request.assembly if isinstance(request, GenerationRequest) else None

    def _pooled(self, request: EmbeddingRequest, pooled: Pooled) -> None:
        request.take(pooled)
        self._probation.produced(pooled.id, request.n_done)
        if request.ended:
            self._note_time(request.began)
            self._end(pooled.id, request.error)

    def _note_time(self, began: float) -> None:
        self._mean_seconds += (time.monotonic() - began - self._mean_seconds) / 8

    def _put(self, request: GenerationRequest, output: Output) -> None:
        assembly = request.assembly
        request.feed.put(assembly.feed(output))
        if output.tokens:
            self._probation.produced(output.id, assembly.length)
        if assembly.ended:
            self._note_time(request.began)
            self._end(output.id, assembly.error)
            if output.end == "none":
                # It was a stop string, of which the worker knows nothing.
                self._supervisor.send(Abort(output.id))

    def died(self, end: Exit, *, blame: bool) -> None:
        """The worker is dead: end the request that killed it, if that is known; the others wait for the next worker."""
        self._actions.fail(ServerFault("the engine ended meanwhile; slots are as a new one has them: empty"))
        if self.facts is not None:
            self._rest(self.facts)
        if not blame:
            self._probation.excused()
            return
        for id in self._probation.died(end.moment, fault=end.fault):
            self._end(
                id, RequestKilledEngine(f"this request ended the engine repeatedly (the worker {end.describe()}); it is given up")
            )

    def failed(self, reason: str) -> None:
        """The model is gone: nobody can tell when it comes back."""
        self._end_all(Unavailable(f"the model could not be loaded again: {reason}", retry_after=RETRY_FAILED))
