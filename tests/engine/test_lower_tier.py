"""What host memory does not have may come from below it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from puna.engine.sequence import common_prefix
from puna.llama.state import State
from tests.engine.driver import Driver

PROMPT = tuple(5 + i % 200 for i in range(200))


class Shelf:
    """A lower tier that holds what fell out of host memory."""

    def __init__(self) -> None:
        self.held: dict[tuple[bytes, tuple[int, ...]], State] = {}
        self.n_loads = 0

    def store(self, key: bytes, tokens: tuple[int, ...], state: State) -> None:
        self.held[key, tokens] = state

    def find(self, tokens: Sequence[int], key: bytes) -> int:
        return max((common_prefix(list(tokens), list(one)) for other, one in self.held if other == key), default=0)

    def load(self, tokens: Sequence[int], key: bytes) -> tuple[tuple[int, ...], State] | None:
        self.n_loads += 1
        length = self.find(tokens, key)
        held = next((one for (_, one) in self.held if common_prefix(list(tokens), list(one)) == length), None)
        return (held, self.held[key, held]) if held is not None and self.held[key, held].size else None


def driver(tiny_llama: Path, shelf: Shelf) -> Driver:
    driver = Driver(tiny_llama)
    driver.engine._host.on_evict = shelf.store
    driver.engine._reuse.lower = shelf
    return driver


def test_what_fell_out_comes_back_from_below(tiny_llama: Path) -> None:
    shelf = Shelf()
    engine = driver(tiny_llama, shelf)
    engine.ask(PROMPT, max_tokens=1)
    engine.engine._host.capacity = engine.engine._host.n_bytes
    engine.ask(PROMPT[::-1], max_tokens=1)
    assert [tokens[:200] for _, tokens in shelf.held] == [PROMPT]
    again = engine.ask((*PROMPT[:150], 7, 8, 9), max_tokens=1)
    assert (again.cached, shelf.n_loads) == (150, 1)
    assert engine.warnings == []


def test_what_is_unusable_below_is_read_again(tiny_llama: Path) -> None:
    shelf = Shelf()
    shelf.store(b"", PROMPT, np.zeros(0, np.uint8))
    engine = driver(tiny_llama, shelf)
    assert engine.ask(PROMPT, force="fine").read == 200


def test_a_damaged_state_from_below_is_read_again_and_gone(tiny_llama: Path) -> None:
    shelf = Shelf()
    shelf.store(b"", PROMPT, np.ones(100, np.uint8))
    engine = driver(tiny_llama, shelf)
    answer = engine.ask(PROMPT, force="fine")
    assert (answer.read, engine.text(answer)) == (200, "fine")
    assert len(engine.warnings) == 1
