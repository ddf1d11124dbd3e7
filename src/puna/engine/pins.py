"""Prompts that were restored from a file while host memory has no room for them. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from puna.engine.sequence import common_prefix
from puna.llama.state import State


@dataclass(frozen=True, slots=True)
class Pin:
    """A restored prompt and its whole state."""

    key: bytes
    tokens: tuple[int, ...]
    state: State


class Pins:
    """At most one prompt a slot, kept until somebody uses the slot: what was asked for by name must not be lost."""

    def __init__(self) -> None:
        self._pins: dict[int, Pin] = {}

    @property
    def n_bytes(self) -> int:
        """Memory that they take."""
        return sum(pin.state.nbytes for pin in self._pins.values())

    def put(self, slot: int, pin: Pin) -> None:
        """Keep a prompt for a slot."""
        self._pins[slot] = pin

    def drop(self, slot: int) -> None:
        """Let go of a slot's prompt, if there is one."""
        self._pins.pop(slot, None)

    def find(self, tokens: list[int], key: bytes, *, whole: bool) -> tuple[Pin | None, int]:
        """The one that spares the most of a prompt, and how many of its tokens; the last one must be computed afresh.

        With `whole` only states all of whose tokens are a beginning of the prompt count.
        """
        best: Pin | None = None
        length = 0
        for pin in self._pins.values():
            shared = min(common_prefix(list(pin.tokens), tokens), len(tokens) - 1) if pin.key == key else 0
            if shared > length and not (whole and shared < len(pin.tokens)):
                best, length = pin, shared
        return best, length
