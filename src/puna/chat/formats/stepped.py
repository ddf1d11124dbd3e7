"""What parsers have in common that are always in one of a few states."""

from __future__ import annotations

from collections.abc import Callable

from puna.chat.events import Event
from puna.chat.formats.emitter import Emitter
from puna.chat.formats.scanner import Scanner

State = Callable[[], bool]
"""Takes what it can, and says whether there is more to do with what is there."""


class SteppedParser:
    """One answer's parser. It is always in one of a few states, each of them a method."""

    def __init__(self, out: Emitter) -> None:
        """The class sets the first state."""
        self._scanner = Scanner()
        self._out = out
        self._state: State

    def feed(self, text: str) -> list[Event]:
        """Events that are certain after the next piece."""
        self._scanner.feed(text)
        self._run()
        return self._out.take()

    def finish(self, *, cut: bool = False) -> list[Event]:
        """The rest. `cut` is whether anything but the model itself ended the output."""
        self._scanner.end(cut=cut)
        self._run()
        self._end(cut=cut)
        return self._out.take()

    def _run(self) -> None:
        while self._state():
            pass

    def _go(self, state: State) -> bool:
        self._state = state
        return True

    def _end(self, *, cut: bool) -> None:
        """Make events of what is left."""
        self._out.finish()
