"""What readers of calls have in common that go from one step to the next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from puna.chat.formats.description import Verdict
from puna.chat.formats.emitter import Emitter
from puna.chat.formats.scanner import Scanner

MAX_NAME = 256
"""Most characters of a name."""

Step = Callable[[Scanner, Emitter], Verdict | None]
"""Takes what it can; None where another step goes on."""


class SteppedReader(ABC):
    """Reads one call: what comes before the name, then the name, then whatever the class has for the arguments."""

    def __init__(self, begin: str) -> None:
        """`begin` comes before the name, without the blanks at its ends."""
        self._begin = begin
        self._taken: list[str] = []
        self._length = 0
        self._step: Step = self._opening

    @property
    def held(self) -> str:
        """What was taken and is no event yet."""
        return "".join(self._taken)

    def read(self, scanner: Scanner, out: Emitter) -> Verdict:
        """Take what there is."""
        while True:
            verdict = self._step(scanner, out)
            if verdict is not None:
                return verdict

    def _opening(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        self._taken.append(scanner.space())
        taken = scanner.take(self._begin)
        if taken is None:
            return "more"
        if not taken:
            return "broken"
        self._step = self._name
        return None

    @abstractmethod
    def _name(self, scanner: Scanner, out: Emitter) -> Verdict | None:
        """Take the name, and go on to the arguments."""
