"""Slots, the public faces of sequences: what each of them last held, and which one a request gets. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from puna.engine.adapters import PLAIN, Phases
from puna.engine.sequence import common_prefix
from puna.types import SlotState

SIMILARITY = 0.1
"""The share of a prompt that a slot must have held to be preferred for it."""


@dataclass(frozen=True, slots=True)
class SlotPrompt:
    """What a slot last had in memory."""

    tokens: list[int]
    key: bytes = b""
    """The namespace that they rest in."""
    cache_key: bytes = b""
    """As the sequence had it that left them."""
    phases: Phases | None = PLAIN
    """Which adapters apply where; None when that is not known, because they came from a file."""


class SlotBoard:
    """What every slot last held. A slot keeps no cells: its prompt rests where all prompts do."""

    def __init__(self, n_slots: int, similarity: float = SIMILARITY) -> None:
        """`similarity`: the share of a prompt that a slot must have held to be preferred, 0 for no such preference."""
        self.n_slots = n_slots
        self.reserved: set[int] = set()
        """Slots that are being saved or restored; no request gets them."""
        self._similarity = similarity
        self._held: dict[int, SlotPrompt] = {}
        self._used = [0] * n_slots
        self._turn = 0
        self._changed: dict[int, SlotState] = {}

    def choose(self, wanted: int, tokens: list[int], busy: Collection[int]) -> int | None:
        """The slot for a prompt; None when there is none for it now.

        The wanted one where there is a wish (numbers beyond the last slot wrap around), else the one that last held the
        most of the prompt, else the least recently used one.
        """
        free = [slot for slot in range(self.n_slots) if slot not in busy and slot not in self.reserved]
        if wanted >= 0:
            return wanted % self.n_slots if wanted % self.n_slots in free else None
        if not free:
            return None
        shared = {slot: self._shared(slot, tokens) for slot in free} if self._similarity > 0 else {}
        best = max(shared, key=lambda slot: shared[slot], default=-1)
        if best >= 0 and shared[best] > self._similarity * len(tokens):
            return best
        return min(free, key=lambda slot: self._used[slot])

    def _shared(self, slot: int, tokens: list[int]) -> int:
        held = self._held.get(slot)
        return common_prefix(held.tokens, tokens) if held is not None else 0

    def held(self, slot: int) -> SlotPrompt | None:
        """What a slot last held, if anything."""
        return self._held.get(slot)

    def shares(self, slot: int, held: SlotPrompt) -> bool:
        """Whether another slot holds all of that too."""
        n = len(held.tokens)
        others = (other for number, other in self._held.items() if number != slot and other.key == held.key)
        return any(other.tokens[:n] == held.tokens for other in others)

    def leave(self, slot: int, held: SlotPrompt | None, state: SlotState | None = None) -> None:
        """A slot is left with this; `state` is the last that is to be seen of whoever left it."""
        self._turn += 1
        self._used[slot] = self._turn
        if held is not None:
            self._held[slot] = held
        if state is not None:
            self._changed[slot] = state

    def clear(self, slot: int) -> int:
        """A slot holds nothing any more; how many tokens it held."""
        held = self._held.pop(slot, None)
        return len(held.tokens) if held is not None else 0

    def take_changed(self) -> list[SlotState]:
        """What is to be seen of slots that were left since this was last asked."""
        changed = list(self._changed.values())
        self._changed.clear()
        return changed
