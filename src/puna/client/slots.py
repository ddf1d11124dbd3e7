"""What the server knows of a worker's slots, and asks of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import msgspec

from puna.client.assembly import Assembly
from puna.errors import InvalidRequest, PunaError, ServerFault
from puna.ipc.frames import SlotDone, SlotJob
from puna.types import SlotAction, SlotOutcome, SlotState, SlotTask


class SlotTable:
    """Every slot as it was last seen, and the request that it works on or last worked on."""

    def __init__(self) -> None:
        self.states: tuple[SlotState, ...] = ()
        """Empty before there is a model."""
        self._tasks: dict[int, Assembly] = {}

    def reset(self, n_slots: int) -> None:
        """A fresh worker's slots: idle, and nothing has been in them."""
        self.states = tuple(SlotState(id=id) for id in range(n_slots))
        self._tasks.clear()

    def take(self, reported: Iterable[SlotState], find: Callable[[int], Assembly | None]) -> None:
        """Take in what a step says; slots that it does not name are idle. `find` gives a request's assembly."""
        states = [msgspec.structs.replace(state, busy=False) if state.busy else state for state in self.states]
        for state in reported:
            states[state.id] = state
            assembly = find(state.request)
            if assembly is not None:
                self._tasks[state.id] = assembly
        self.states = tuple(states)

    def task(self, slot: int) -> SlotTask | None:
        """The request of a slot, if it ever had one."""
        assembly = self._tasks.get(slot)
        return SlotTask(generation=assembly.generation, produced=tuple(assembly.produced)) if assembly is not None else None


class SlotActions:
    """Slot jobs that the worker has not answered yet."""

    def __init__(self, send: Callable[[SlotJob], None]) -> None:
        self._send = send
        self._next_id = 0
        self._waiting: dict[int, asyncio.Future[SlotOutcome]] = {}

    async def run(self, action: SlotAction, slot: int, path: str) -> SlotOutcome:
        """Have a job done and wait for its answer. Raises `InvalidRequest` or `ServerFault` with the worker's reason."""
        id = self._next_id
        self._next_id += 1
        future: asyncio.Future[SlotOutcome] = asyncio.get_running_loop().create_future()
        self._waiting[id] = future
        self._send(SlotJob(id, action, slot, path))
        try:
            return await future
        finally:
            self._waiting.pop(id, None)

    def done(self, answer: SlotDone) -> None:
        """The worker's answer; nobody may be left who waits for it."""
        future = self._waiting.get(answer.id)
        if future is None or future.done():
            return
        if not answer.error:
            future.set_result(answer.outcome)
        elif answer.error_kind == "invalid":
            future.set_exception(InvalidRequest(answer.error))
        else:
            future.set_exception(ServerFault(answer.error))

    def fail(self, error: PunaError) -> None:
        """No answer will come to any of them."""
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)
