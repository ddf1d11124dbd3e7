"""Models with their workers: loaded when they are wanted, unloaded when another one needs the room or nobody comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from puna.errors import PunaError, StartupError, Unavailable
from puna.log import logger
from puna.models.catalogue import Catalogue, Entry
from puna.models.policy import Resident, next_look, to_evict, to_sleep

State = Literal["unloaded", "loading", "loaded", "sleeping", "failed"]

RETRY_FAILED = 5.0
"""Seconds for which a model that could not be loaded is not tried again."""


class Served(Protocol):
    """A model that can be loaded once, and is of no use after it was unloaded."""

    async def load(self, on_loading: Callable[[float], None]) -> None:
        """Raises `StartupError` where it cannot be loaded."""
        ...

    async def unload(self, grace: float) -> None:
        """Give back everything. What still runs has `grace` seconds to end."""
        ...


S = TypeVar("S", bound=Served)


@dataclass
class _Slot(Generic[S]):
    entry: Entry
    state: State = "unloaded"
    served: S | None = None
    leases: int = 0
    last_used: float = 0.0
    progress: float = 0.0
    failure: str = ""
    failed_at: float = 0.0
    loading: asyncio.Task[S] | None = None


@dataclass(frozen=True)
class News:
    """Something about a model has changed."""

    name: str
    state: State
    progress: float
    """Share of it that is loaded, 0 to 1."""
    failure: str = ""


class Pool(Generic[S]):
    """All models of a catalogue. Everything here belongs to one event loop."""

    def __init__(
        self,
        catalogue: Catalogue,
        make: Callable[[Entry], S],
        *,
        most: int = 0,
        budget: int = 0,
        sleep_after: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """At most `most` models and `budget` bytes are loaded at once, and those that nobody used for `sleep_after` seconds
        are unloaded; 0 is no limit, and never."""
        self.catalogue = catalogue
        self._make = make
        self._most = most
        self._budget = budget
        self._sleep_after = sleep_after
        self._clock = clock
        self._slots = {entry.name: _Slot[S](entry) for entry in catalogue.entries}
        self._turn = asyncio.Lock()
        """One model is loaded at a time, in the order in which they were asked for."""
        self._changed = asyncio.Event()
        self._listeners: set[asyncio.Queue[News]] = set()
        self._sleeper: asyncio.Task[None] | None = None
        self._closed = False

    def state(self, entry: Entry) -> News:
        """What is to be said of a model now."""
        slot = self._slots[entry.name]
        return News(entry.name, slot.state, slot.progress, slot.failure)

    def loaded(self, entry: Entry) -> S | None:
        """A model if it is loaded, without any use of it."""
        return self._slots[entry.name].served

    @asynccontextmanager
    async def lease(self, entry: Entry) -> AsyncIterator[S]:
        """A model for a request: loaded if it has to be, and not unloaded while this lasts.

        Raises `Unavailable` with the reason if it cannot be loaded.
        """
        slot = self._slots[entry.name]
        slot.leases += 1
        try:
            yield await self._ready(slot)
        finally:
            slot.leases -= 1
            slot.last_used = self._clock()
            self._notify()

    async def load(self, entry: Entry) -> None:
        """Load a model without a request for it. Raises `Unavailable`."""
        async with self.lease(entry):
            pass

    async def unload(self, entry: Entry, *, grace: float) -> None:
        """Unload a model, whoever uses it. One that is being loaded is given up."""
        slot = self._slots[entry.name]
        if slot.loading is not None:
            slot.loading.cancel()
            await asyncio.gather(slot.loading, return_exceptions=True)
        await self._unload(slot, "unloaded", grace)

    async def close(self, grace: float) -> None:
        """Unload everything, and load nothing more."""
        self._closed = True
        if self._sleeper is not None:
            self._sleeper.cancel()
        await asyncio.gather(*(self.unload(slot.entry, grace=grace) for slot in self._slots.values()), return_exceptions=True)

    @asynccontextmanager
    async def news(self, size: int = 256) -> AsyncIterator[asyncio.Queue[News]]:
        """What changes from now on. A listener that does not listen misses the oldest."""
        queue: asyncio.Queue[News] = asyncio.Queue(size)
        self._listeners.add(queue)
        try:
            yield queue
        finally:
            self._listeners.discard(queue)

    async def _ready(self, slot: _Slot[S]) -> S:
        if self._closed:
            raise Unavailable("the server is shutting down", retry_after=5)
        if slot.served is not None:
            return slot.served
        if slot.state == "failed" and self._clock() - slot.failed_at < RETRY_FAILED:
            raise Unavailable(f"the model {slot.entry.name!r} could not be loaded: {slot.failure}", retry_after=int(RETRY_FAILED))
        if slot.loading is None:
            slot.loading = asyncio.create_task(self._load(slot))
        loading = slot.loading
        # A client that leaves does not end the loading: it will come back, or another one.
        await asyncio.wait([loading])
        if loading.cancelled():
            raise Unavailable(f"the model {slot.entry.name!r} was unloaded while it was being loaded")
        return loading.result()

    async def _load(self, slot: _Slot[S]) -> S:
        entry = slot.entry
        try:
            self._say(slot, "loading", 0.0)
            async with self._turn:
                await self._make_room(slot)
                served = self._make(entry)
                try:
                    await served.load(lambda share: self._progress(slot, share))
                except BaseException:
                    await served.unload(0)
                    raise
            slot.served, slot.failure = served, ""
            slot.last_used = self._clock()
            self._say(slot, "loaded", 1.0)
            self._watch()
            return served
        except asyncio.CancelledError:
            self._say(slot, "unloaded", 0.0)
            raise
        except (StartupError, PunaError) as error:
            slot.failure, slot.failed_at = error.message, self._clock()
            self._say(slot, "failed", 0.0)
            if isinstance(error, StartupError):
                raise Unavailable(f"the model {entry.name!r} could not be loaded: {error.message}", retry_after=5) from error
            raise
        finally:
            slot.loading = None
            self._notify()

    async def _make_room(self, wanted: _Slot[S]) -> None:
        """Unload what has to go; wait while that is busy. The order of those who wait is the order in which they came."""
        needed = wanted.entry.needed
        if self._budget and needed > self._budget:
            have = f"{self._budget >> 20} MiB that models may take (--models-memory)"
            raise Unavailable(f"the model {wanted.entry.name!r} needs {needed >> 20} MiB, more than the {have}")
        while True:
            self._changed.clear()
            gone = to_evict(self._residents(), needed, most=self._most, budget=self._budget)
            if gone is not None:
                for name in gone:
                    logger.info("unloading %s to make room for %s", name, wanted.entry.name)
                    await self._unload(self._slots[name], "unloaded", 0)
                return
            await self._changed.wait()

    async def _unload(self, slot: _Slot[S], state: State, grace: float) -> None:
        served, slot.served = slot.served, None
        if served is not None:
            self._say(slot, state, 0.0)
            await served.unload(grace)
        elif slot.state != "failed":
            slot.state = "unloaded"
        self._notify()

    def _residents(self) -> list[Resident]:
        return [
            Resident(slot.entry.name, slot.entry.needed, slot.leases > 0, slot.last_used)
            for slot in self._slots.values()
            if slot.served is not None
        ]

    def _watch(self) -> None:
        if self._sleep_after > 0 and (self._sleeper is None or self._sleeper.done()):
            self._sleeper = asyncio.create_task(self._put_to_sleep())

    async def _put_to_sleep(self) -> None:
        while any(slot.served is not None for slot in self._slots.values()):
            for name in to_sleep(self._residents(), self._clock(), after=self._sleep_after):
                logger.info("%s sleeps: nobody has used it for %g s", name, self._sleep_after)
                await self._unload(self._slots[name], "sleeping", 0)
            wait = next_look(self._residents(), self._clock(), after=self._sleep_after)
            await asyncio.sleep(self._sleep_after if wait is None else wait + 0.01)

    def _progress(self, slot: _Slot[S], share: float) -> None:
        """So much of a model is loaded. A worker that replaces a dead one later tells that too: for clients it is still there."""
        if slot.loading is not None:
            self._say(slot, "loading", share)

    def _say(self, slot: _Slot[S], state: State, progress: float) -> None:
        slot.state, slot.progress = state, progress
        news = News(slot.entry.name, state, progress, slot.failure if state == "failed" else "")
        for queue in self._listeners:
            if queue.full():
                queue.get_nowait()
            queue.put_nowait(news)

    def _notify(self) -> None:
        self._changed.set()
