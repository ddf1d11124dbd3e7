"""What host memory does not have may come from below it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

import numpy as np

from puna.engine.sequence import common_prefix
from puna.engine.tiers import Offer, Stored
from puna.llama.state import State
from tests.engine.driver import Driver

PROMPT = tuple(5 + i % 200 for i in range(200))


class Shelf:
    """A lower tier that holds what fell out of host memory."""

    def __init__(self) -> None:
        self.held: dict[tuple[bytes, tuple[int, ...]], State] = {}
        self.n_loads = 0
        self.seconds = 0.0
        self.slow = False
        self.future: Future[Stored | None] = Future()

    def store(self, key: bytes, tokens: tuple[int, ...], state: State) -> None:
        self.held[key, tokens] = state

    def find(self, tokens: Sequence[int], key: bytes) -> Offer | None:
        length = max((common_prefix(list(tokens), list(one)) for other, one in self.held if other == key), default=0)
        return Offer(length, self.seconds) if length else None

    def fetch(self, tokens: Sequence[int], key: bytes) -> Future[Stored | None]:
        self.n_loads += 1
        held = self.best(tokens, key)
        self.future = Future()
        if not self.slow:
            self.future.set_result((held, self.held[key, held]) if self.held[key, held].size else None)
        return self.future

    def best(self, tokens: Sequence[int], key: bytes) -> tuple[int, ...]:
        return max((one for other, one in self.held if other == key), key=lambda one: common_prefix(list(tokens), list(one)))

    def forget(self, tokens: Sequence[int], key: bytes) -> None:
        for other, one in list(self.held):
            if other == key and one == tuple(tokens)[: len(one)]:
                del self.held[other, one]

    def discard(self, tokens: Sequence[int], key: bytes) -> None:
        del self.held[key, self.best(tokens, key)]


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
    assert not shelf.held


def test_a_request_waits_for_what_is_below_while_others_go_on(tiny_llama: Path) -> None:
    shelf = Shelf()
    engine = driver(tiny_llama, shelf)
    engine.ask(PROMPT, max_tokens=1)
    engine.engine.close(0)
    (entry,) = engine.engine._host.entries()
    shelf.store(*entry)
    engine = driver(tiny_llama, shelf)
    shelf.slow = True
    waiting, follower = engine.submit(PROMPT, force="one"), engine.submit(PROMPT, force="two")
    other = engine.ask_beside(PROMPT[::-1], force="three")
    assert engine.text(other) == "three"
    assert (waiting.end, follower.end, shelf.n_loads) == ("none", "none", 1)
    shelf.future.set_result((entry[1], entry[2]))
    engine.run()
    assert (engine.text(waiting), engine.text(follower)) == ("one", "two")
    assert (waiting.cached, follower.cached) == (199, 199)
    assert engine.stats.disk_hits == 1


def test_what_takes_longer_than_reading_stays_below(tiny_llama: Path) -> None:
    shelf = Shelf()
    engine = driver(tiny_llama, shelf)
    engine.ask(PROMPT, max_tokens=1)
    (entry,) = engine.engine._host.entries()
    shelf.store(*entry)
    engine = driver(tiny_llama, shelf)
    shelf.seconds = 60
    assert (engine.ask(PROMPT, max_tokens=1).read, shelf.n_loads) == (200, 0)


def test_what_is_below_serves_without_host_memory_too(tiny_llama: Path) -> None:
    shelf = Shelf()
    engine = driver(tiny_llama, shelf)
    engine.ask(PROMPT, max_tokens=1)
    (entry,) = engine.engine._host.entries()
    shelf.store(*entry)
    engine = Driver(tiny_llama, cache_ram=0)
    engine.engine._reuse.lower = shelf
    answer = engine.ask(PROMPT, force="fine")
    assert (answer.cached, engine.text(answer)) == (199, "fine")


def test_who_leaves_while_waiting_leaves_nothing_behind(tiny_llama: Path) -> None:
    shelf = Shelf()
    shelf.store(b"", PROMPT, np.ones(100, np.uint8))
    shelf.slow = True
    engine = driver(tiny_llama, shelf)
    waiting = engine.submit(PROMPT)
    engine.step()
    engine.abort(waiting)
    assert engine.engine.idle
