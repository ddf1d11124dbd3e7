"""Models that come and go, with stand-ins for their workers."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable

import pytest

from puna.errors import StartupError, Unavailable
from puna.models.catalogue import Catalogue, Entry
from puna.models.pool import RETRY_FAILED, News, Pool
from tests.unit.models.test_catalogue import entry


class Fake:
    """A model whose loading can be held up, or fail."""

    def __init__(self, model: Entry, log: list[str], gate: asyncio.Event, failures: dict[str, str]) -> None:
        self.name = model.name
        self._log = log
        self._gate = gate
        self._failures = failures

    async def load(self, on_loading: Callable[[float], None]) -> None:
        self._log.append(f"load {self.name}")
        self.on_loading = on_loading
        on_loading(0.5)
        await self._gate.wait()
        if self.name in self._failures:
            raise StartupError(self._failures[self.name])

    async def unload(self, grace: float) -> None:
        await asyncio.sleep(0)
        self._log.append(f"unload {self.name}")


class Bench:
    """A pool of models a, b and c, and what happened to them."""

    def __init__(self, *, most: int = 0, budget: int = 0, sleep_after: float = 0.0, needed: int = 10) -> None:
        self.log: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failures: dict[str, str] = {}
        self.now = 100.0
        self.entries = {name: dataclasses.replace(entry(name), needed=needed) for name in "abc"}
        self.pool: Pool[Fake] = Pool(
            Catalogue(self.entries.values()),
            lambda model: Fake(model, self.log, self.gate, self.failures),
            most=most,
            budget=budget,
            sleep_after=sleep_after,
            clock=lambda: self.now,
        )

    async def use(self, name: str, hold: asyncio.Event | None = None) -> str:
        async with self.pool.lease(self.entries[name]) as served:
            if hold is not None:
                await hold.wait()
            return served.name

    def state(self, name: str) -> str:
        return self.pool.state(self.entries[name]).state


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_model_is_loaded_once_for_all_who_want_it() -> None:
    bench = Bench()
    bench.gate.clear()
    asking = [asyncio.create_task(bench.use("a")) for _ in range(5)]
    await settle()
    assert bench.state("a") == "loading" and bench.pool.state(bench.entries["a"]).progress == 0.5
    bench.gate.set()
    assert await asyncio.gather(*asking) == ["a"] * 5
    assert bench.log == ["load a"] and bench.state("a") == "loaded"


async def test_the_least_recently_used_makes_room() -> None:
    bench = Bench(most=2)
    for name in ("a", "b", "a", "c"):
        bench.now += 1
        await bench.use(name)
    assert bench.log == ["load a", "load b", "unload b", "load c"]
    assert [bench.state(name) for name in "abc"] == ["loaded", "unloaded", "loaded"]


async def test_a_busy_model_stays_and_others_wait_in_order() -> None:
    bench = Bench(most=1)
    hold = asyncio.Event()
    busy = asyncio.create_task(bench.use("a", hold))
    await settle()
    waiting = [asyncio.create_task(bench.use(name)) for name in ("b", "c")]
    await settle()
    assert bench.log == ["load a"] and bench.state("b") == "loading"
    hold.set()
    assert await busy == "a" and await asyncio.gather(*waiting) == ["b", "c"]
    assert bench.log == ["load a", "unload a", "load b", "unload b", "load c"]


async def test_a_client_that_leaves_does_not_end_the_loading() -> None:
    bench = Bench()
    bench.gate.clear()
    asking = asyncio.create_task(bench.use("a"))
    await settle()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    bench.gate.set()
    await settle()
    assert bench.state("a") == "loaded"


async def test_a_failure_is_told_and_tried_again_later() -> None:
    bench = Bench()
    bench.failures["a"] = "it is no model"
    for _ in range(3):
        with pytest.raises(Unavailable, match="'a' could not be loaded: it is no model"):
            await bench.use("a")
    assert bench.log == ["load a", "unload a"] and bench.state("a") == "failed"
    assert bench.pool.state(bench.entries["a"]).failure == "it is no model"
    assert await bench.use("b") == "b"
    bench.failures.clear()
    bench.now += RETRY_FAILED
    assert await bench.use("a") == "a"


async def test_a_budget_smaller_than_the_model() -> None:
    bench = Bench(budget=5 << 20, needed=10 << 20)
    with pytest.raises(Unavailable, match="'a' needs 10 MiB, more than the 5 MiB"):
        await bench.use("a")
    assert bench.log == []


async def test_unloading_while_it_loads() -> None:
    bench = Bench()
    bench.gate.clear()
    asking = asyncio.create_task(bench.use("a"))
    await settle()
    await bench.pool.unload(bench.entries["a"], grace=0)
    with pytest.raises(Unavailable, match="was unloaded while it was being loaded"):
        await asking
    assert bench.state("a") == "unloaded" and bench.log == ["load a", "unload a"]


async def test_sleep_and_waking() -> None:
    bench = Bench(sleep_after=0.02)
    await bench.use("a")
    bench.now += 1
    async with bench.pool.news() as news:
        for _ in range(200):
            if bench.log == ["load a", "unload a"]:
                break
            await asyncio.sleep(0.01)
        assert bench.state("a") == "sleeping" and bench.log == ["load a", "unload a"]
        assert news.get_nowait() == News("a", "sleeping", 0.0)
    assert await bench.use("a") == "a" and bench.state("a") == "loaded"
    await bench.pool.close(0)


async def test_news_and_the_end() -> None:
    bench = Bench()
    async with bench.pool.news(size=2) as news:
        await bench.use("a")
        await bench.use("b")
        assert [news.get_nowait().state for _ in range(2)] == ["loading", "loaded"]
    await bench.pool.close(0)
    assert sorted(bench.log[2:]) == ["unload a", "unload b"]
    with pytest.raises(Unavailable, match="shutting down"):
        await bench.use("c")


async def test_a_worker_that_is_replaced_leaves_the_model_loaded() -> None:
    bench = Bench()
    async with bench.pool.lease(bench.entries["a"]) as served:
        served.on_loading(0.3)
        assert (bench.state("a"), bench.pool.state(bench.entries["a"]).progress) == ("loaded", 1.0)
