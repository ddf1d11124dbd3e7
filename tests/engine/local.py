"""The server's whole service over an engine in the same process: one load of a model, and no sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import httpx

from puna.client import admission
from puna.client.assembly import Assembly
from puna.client.requests import GenerationRequest
from puna.client.stream import Stream
from puna.config import ServerSettings
from puna.errors import NotSupported
from puna.ipc.frames import Abort, EndThinking
from puna.llama.vocab import Vocab
from puna.server.app import create_app
from puna.service.ports import Vectors
from puna.types import EngineStats, Generation, ModelFacts, SlotAction, SlotOutcome, SlotState, SlotTask
from tests.engine.driver import Driver


class LocalEngine:
    """What the service needs of an engine, done by one that steps whenever somebody waits for it."""

    state = "ready"
    failure = ""
    restarts = 0
    slots: Sequence[SlotState] = ()

    def __init__(self, model: Path, **settings: object) -> None:
        driver = Driver(model, **settings)
        self._engine = driver.engine
        self.facts: ModelFacts | None = driver.facts
        self.tokenizer: Vocab = driver.vocab
        self.stats = EngineStats()
        self._requests: dict[int, GenerationRequest] = {}
        self._next = 0
        self._pump: asyncio.Task[None] | None = None

    @property
    def in_flight(self) -> int:
        return len(self._requests)

    def slot_task(self, slot: int) -> SlotTask | None:
        return None

    async def act_on_slot(self, action: SlotAction, slot: int, path: str = "") -> SlotOutcome:
        raise NotSupported("this engine saves no slots")

    def embed(self, inputs: Sequence[Sequence[int]], *, lora: Sequence[tuple[int, float]] = ()) -> Vectors:
        raise NotSupported("this engine makes no vectors")

    def generate(self, generation: Generation, *, every_token: bool = False) -> Stream:
        assert self.facts is not None
        admission.check(generation, self.facts)
        preserved = frozenset(generation.preserved_tokens)
        piece = self.tokenizer.piece
        request = GenerationRequest(
            Assembly(generation, lambda token: piece(token, special=token in preserved), every_token=every_token)
        )
        self._next += 1
        self._requests[self._next] = request
        self._engine.submit(request.assembly.submit(self._next))
        if self._pump is None or self._pump.done():
            self._pump = asyncio.get_running_loop().create_task(self._run())
        return Stream(self._next, request.feed, partial(self._abort, self._next), partial(self._end_thinking, self._next))

    def _abort(self, id: int) -> None:
        request = self._requests.pop(id, None)
        if request is not None:
            request.close(None)
            self._engine.abort(Abort(id))

    def _end_thinking(self, id: int) -> None:
        self._engine.end_thinking(EndThinking(id))

    async def _run(self) -> None:
        while not self._engine.idle:
            for output in self._engine.step().outputs:
                request = self._requests.get(output.id)
                if request is None:
                    continue
                request.feed.put(request.assembly.feed(output))
                if request.assembly.ended:
                    del self._requests[output.id]
                    request.close(request.assembly.error)
                    if output.end == "none":
                        self._engine.abort(Abort(output.id))
            await asyncio.sleep(0)


def local_client(engine: LocalEngine, **settings: object) -> httpx.AsyncClient:
    """A client of a server over that engine."""
    app = create_app(engine, ServerSettings(**settings))  # type: ignore[arg-type]  # passed on
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost", timeout=60)
