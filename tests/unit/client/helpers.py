"""What the client's tests share: a tokenizer, clients on fake workers, and a look at processes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from puna.client.handle import EngineClient
from puna.client.stream import Stream
from puna.config import EngineSettings
from puna.types import Chunk, Generation
from tests.unit.client.scenario import Scenario


class Numbers:
    """Every token is its number and a space."""

    def piece(self, token: int, /, *, special: bool = False) -> bytes:
        return b"%d " % token


def make(scenario: Scenario, *, max_queue: int = 64) -> EngineClient[Numbers]:
    """A client that is not started."""
    settings = EngineSettings(model="fake.gguf")
    return EngineClient(settings, lambda path: Numbers(), max_queue=max_queue, command=scenario.command())


@asynccontextmanager
async def started(scenario: Scenario, *, max_queue: int = 64) -> AsyncIterator[EngineClient[Numbers]]:
    """A running client, whose worker is gone afterwards."""
    client = make(scenario, max_queue=max_queue)
    await client.start()
    pid = client.worker_pid
    try:
        yield client
    finally:
        await client.stop()
        assert client.worker_pid is None
        assert pid is not None
        assert not alive(pid)


def generation(first: int, n: int, *, prompt: int = 5, stop: tuple[str, ...] = ()) -> Generation:
    """A generation whose prompt begins with `first`."""
    return Generation(prompt=tuple(range(first, first + prompt)), max_tokens=n, stop=stop)


async def collect(stream: Stream) -> list[Chunk]:
    """Read a stream to its end."""
    return [chunk async for chunk in stream]


def tokens(chunks: list[Chunk]) -> list[int]:
    """The tokens of these chunks."""
    return [token for chunk in chunks for token in chunk.tokens]


def text(chunks: list[Chunk]) -> str:
    """The text of these chunks."""
    return "".join(chunk.text for chunk in chunks)


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait for a condition; fail when it does not come true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        await asyncio.sleep(0.005)


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return status.rpartition(")")[2].split()[0] not in "ZX"


def lines(scenario: Scenario, name: str) -> list[str]:
    """What the fake workers wrote down, over all lives."""
    path = Path(scenario.folder, name)
    return path.read_text().split() if path.exists() else []
