"""Requests of which only the newest counts: an editor asks again at every keystroke."""

from __future__ import annotations

from weakref import WeakValueDictionary, ref

from puna.service.running import Running


class Turn:
    """One request's place among those with the same key."""

    def __init__(self) -> None:
        self.over = False
        """Whether a newer request has come."""
        self._running: ref[Running] | None = None

    def begin(self, running: Running) -> None:
        """The request is in the engine from now on; it keeps its turn for as long as it lives."""
        self._running = ref(running)
        running.turn = self

    async def give_way(self) -> None:
        """End the request, or keep it from beginning."""
        self.over = True
        running = self._running() if self._running is not None else None
        if running is not None:
            await running.cut()


class Turns:
    """The newest request of each key."""

    def __init__(self) -> None:
        self._newest: WeakValueDictionary[int, Turn] = WeakValueDictionary()

    def __len__(self) -> int:
        """How many keys are in use."""
        return len(self._newest)

    async def take(self, key: int) -> Turn:
        """A turn for a new request; the one before it has ended when this returns."""
        before = self._newest.get(key)
        turn = self._newest[key] = Turn()
        if before is not None:
            await before.give_way()
        return turn
