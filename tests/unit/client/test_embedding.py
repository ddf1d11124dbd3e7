"""Inputs on their way to a worker and back as vectors, whatever becomes of the worker."""

from __future__ import annotations

import asyncio
import os
import signal
from array import array
from pathlib import Path
from typing import Any

import pytest

from puna.client.handle import EngineClient
from puna.client.requests import EmbeddingRequest
from puna.errors import InputTooLong, InvalidRequest, PunaError, QueueFull, RequestKilledEngine, ServerFault, Unavailable
from puna.ipc.frames import Pooled
from tests.unit.client.helpers import Numbers, collect, generation, lines, started, tokens, until
from tests.unit.client.scenario import Killer, Scenario, answer

Client = EngineClient[Numbers]


def scene(folder: Path, **fields: Any) -> Scenario:
    return Scenario(folder=str(folder), **fields)


def inputs(first: int, n: int) -> list[list[int]]:
    """`n` inputs of growing length that all begin with a number of their own."""
    return [[first + index] * (index % 4 + 1) for index in range(n)]


async def vectors(client: Client, asked: list[list[int]]) -> list[list[float]] | PunaError:
    try:
        return [list(array("f", one)) for one in await client.embed(asked).all()]
    except PunaError as error:
        return error


async def test_vectors_come_in_the_order_of_the_inputs(tmp_path: Path) -> None:
    async with started(scene(tmp_path)) as client:
        found = await asyncio.gather(*(vectors(client, inputs(first, 20)) for first in range(100, 1000, 100)))
        assert found == [inputs(first, 20) for first in range(100, 1000, 100)]
        assert client.in_flight == 0


async def test_they_run_beside_generations(tmp_path: Path) -> None:
    async with started(scene(tmp_path)) as client:
        chunks, found = await asyncio.gather(collect(client.generate(generation(5, 30))), vectors(client, inputs(100, 30)))
        assert tokens(chunks) == answer(generation(5, 30).prompt, 30)
        assert found == inputs(100, 30)


async def test_what_was_done_before_a_death_is_not_asked_for_again(tmp_path: Path) -> None:
    async with started(scene(tmp_path, step_ms=5)) as client:
        working = asyncio.create_task(vectors(client, inputs(100, 60)))
        await until(lambda: any(isinstance(one, EmbeddingRequest) and one.n_done > 20 for one in client._requests.values()))
        assert client.worker_pid is not None
        os.kill(client.worker_pid, signal.SIGKILL)
        assert await working == inputs(100, 60)
        first, second = (int(line.split(":")[1]) for line in lines(scene(tmp_path), "embeds"))
        assert first == 60 and 0 < second < 60


async def test_a_request_that_kills_the_worker_is_found_and_no_other_pays(tmp_path: Path) -> None:
    async with started(scene(tmp_path, killers={113: Killer(at=0)})) as client:
        asked = [inputs(first, 20) for first in (100, 200, 300)]
        found = await asyncio.gather(*(vectors(client, one) for one in asked), collect(client.generate(generation(7, 40))))
        assert isinstance(found[0], RequestKilledEngine)
        assert found[1:3] == asked[1:]
        assert tokens(found[3]) == answer(generation(7, 40).prompt, 40)  # type: ignore[arg-type]  # gather's last one


async def test_leaving_stops_the_work(tmp_path: Path) -> None:
    async with started(scene(tmp_path, step_ms=5)) as client:
        working = asyncio.create_task(vectors(client, inputs(100, 1000)))
        await until(lambda: bool(lines(scene(tmp_path), "embeds")))
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        assert client.in_flight == 0
        await until(lambda: bool(lines(scene(tmp_path), "aborts")))
        assert await vectors(client, [[1]]) == [[1]]


async def test_what_can_never_be_done_is_refused_by_number(tmp_path: Path) -> None:
    async with started(scene(tmp_path, n_ctx=8, n_vocab=50)) as client:
        with pytest.raises(InvalidRequest, match="input 1 has no tokens"):
            client.embed([[1], []])
        for bad in (-1, 50):
            with pytest.raises(InvalidRequest, match="input 2 has a token id outside"):
                client.embed([[1], [2], [3, bad]])
        with pytest.raises(InputTooLong, match=r"item 1 .* 9 tokens; the model can take 8"):
            client.embed([[1], [1] * 9])
        assert client.in_flight == 0


async def test_the_queue_is_bounded(tmp_path: Path) -> None:
    async with started(scene(tmp_path, n_slots=1, step_ms=20), max_queue=1) as client:
        waiting = [asyncio.create_task(vectors(client, inputs(100, 3))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(QueueFull):
            client.embed([[1]])
        assert await asyncio.gather(*waiting) == [inputs(100, 3)] * 2


async def test_stopping_ends_what_waits(tmp_path: Path) -> None:
    async with started(scene(tmp_path, step_ms=20)) as client:
        working = asyncio.create_task(vectors(client, inputs(100, 1000)))
        await asyncio.sleep(0)
        await client.stop()
        assert isinstance(await working, Unavailable)


def test_parts_are_joined_and_begun_again() -> None:
    async def run() -> None:
        request = EmbeddingRequest([[1, 2, 3], [4]])
        request.take(Pooled(0, (0,), (b"aaaa",), part=True))
        facts: Any = None
        assert request.frame(0, facts).indices == (0, 1)
        request.take(Pooled(0, (0,), (b"bbbb",), part=True))
        request.take(Pooled(0, (1,), (b"dddd",)))
        assert not request.ended and request.n_done == 1
        request.take(Pooled(0, (0,), (b"cccc",)))
        assert request.ended and request.vectors == [b"bbbbcccc", b"dddd"] and request.n_done == 4
        failed = EmbeddingRequest([[1]])
        failed.take(Pooled(0, error="no memory"))
        assert failed.ended and isinstance(failed.error, ServerFault)

    asyncio.run(run())
