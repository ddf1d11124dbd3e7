"""Workers that die: answers go on, the culprit is found, and nobody else pays for it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from puna.client.handle import EngineClient
from puna.errors import PunaError, RequestKilledEngine, Unavailable
from puna.types import Chunk, Generation
from tests.unit.client.helpers import Numbers, alive, collect, generation, lines, started, text, tokens, until
from tests.unit.client.scenario import Killer, Scenario, answer

N = 60


def kill(client: EngineClient[Numbers]) -> None:
    """Kill -9 the worker."""
    pid = client.worker_pid
    assert pid is not None
    # It may have died already, unnoticed so far.
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


async def outcome(client: EngineClient[Numbers], first: int, n: int = N) -> list[Chunk] | PunaError:
    """What a reader gets."""
    try:
        return await collect(client.generate(generation(first, n)))
    except PunaError as error:
        return error


def check(result: list[Chunk] | PunaError, first: int, n: int = N) -> None:
    """Nothing repeats, nothing is missing, and the end is the end."""
    assert isinstance(result, list), result
    want = answer(generation(first, n).prompt, n)
    assert tokens(result) == want
    assert text(result) == "".join(f"{token} " for token in want)
    assert [chunk.stop_type for chunk in result] == ["none"] * (len(result) - 1) + ["limit"]
    assert result[-1].timings is not None
    assert result[-1].timings.predicted_n == n
    assert result[-1].timings.prompt_n == 5


def written(folder: Path, name: str) -> list[str]:
    """What the workers wrote down."""
    return lines(scene(folder), name)


def enough(folder: Path, n: int) -> bool:
    """Whether the workers got this many submissions."""
    return len(written(folder, "submits")) >= n


def gone(pid: int) -> bool:
    return not alive(pid)


def scene(folder: Path, **fields: Any) -> Scenario:
    return Scenario(folder=str(folder), **{"n_slots": 8, **fields})


@pytest.mark.parametrize("kills", [1, 2, 4])
async def test_kill_9_in_the_middle_of_eight_streams(tmp_path: Path, kills: int) -> None:
    n = 300
    async with started(scene(tmp_path, step_ms=3)) as client:
        reading = [asyncio.create_task(outcome(client, i * 10, n)) for i in range(8)]
        for _ in range(kills):
            await until(lambda: client.state == "ready" and client.stats.n_running == 8)
            await asyncio.sleep(0.02)
            kill(client)
            await until(lambda: client.state == "restarting")
        for i, result in enumerate(await asyncio.gather(*reading)):
            check(result, i * 10, n)
        assert client.restarts == kills
        assert client.state == "ready"


async def test_kill_9_twice_before_anything_moved(tmp_path: Path) -> None:
    async with started(scene(tmp_path, step_ms=150)) as client:
        reading = [asyncio.create_task(outcome(client, i * 10, 3)) for i in range(8)]
        for submits in (8, 16):
            await until(partial(enough, tmp_path, submits))
            kill(client)
            await until(lambda: client.state == "restarting")
        for i, result in enumerate(await asyncio.gather(*reading)):
            check(result, i * 10, 3)


@pytest.mark.parametrize("end_frame_apart", [False, True])
@pytest.mark.parametrize("tokens_per_step", [1, 7])
async def test_deaths_at_every_moment(tmp_path: Path, tokens_per_step: int, end_frame_apart: bool) -> None:
    async with started(scene(tmp_path, tokens_per_step=tokens_per_step, end_frame_apart=end_frame_apart)) as client:
        reading = [asyncio.create_task(outcome(client, i * 10)) for i in range(12)]
        while client.in_flight or not client.restarts:
            await asyncio.sleep(0.013)
            if client.worker_pid is not None and client.restarts < 6:
                kill(client)
                await until(lambda: (client.state == "ready" and client.stats.n_running > 0) or not client.in_flight)
        for i, result in enumerate(await asyncio.gather(*reading)):
            check(result, i * 10)


@pytest.mark.parametrize(
    ("name", "at", "phase"),
    [
        ("SIGABRT", -1, "decode"),
        ("SIGSEGV", 0, "sample"),
        ("SIGABRT", 5, "sample"),
        ("SIGSEGV", 5, "constrain"),
        ("SIGILL", 5, "sample"),
    ],
)
async def test_a_killer_gets_its_error_alone_after_two_deaths(tmp_path: Path, name: str, at: int, phase: Any) -> None:
    async with started(scene(tmp_path, step_ms=3, killers={50: Killer(at=at, signal=name, phase=phase)})) as client:
        reading = [asyncio.create_task(outcome(client, first)) for first in (0, 10, 20)]
        await until(lambda: client.stats.n_running == 3)
        killer, *results = await asyncio.gather(outcome(client, 50), *reading)
        assert isinstance(killer, RequestKilledEngine)
        assert killer.status == 500
        assert name in str(killer)
        for first, result in zip((0, 10, 20), results, strict=True):
            check(result, first)
        assert client.restarts == 2
        assert written(tmp_path, "killer50") == ["xx"]
        check(await outcome(client, 60), 60)


@pytest.mark.parametrize("at", [3, 20])
async def test_a_killer_hidden_in_a_batch_takes_three_deaths(tmp_path: Path, at: int) -> None:
    async with started(scene(tmp_path, killers={30: Killer(at=at, phase="decode")})) as client:
        results = await asyncio.gather(*(outcome(client, i * 10) for i in range(12)))
        for i, result in enumerate(results):
            if i == 3:
                assert isinstance(result, RequestKilledEngine)
            else:
                check(result, i * 10)
        assert client.restarts <= 3


async def test_a_killer_that_stops_after_one_death_is_served(tmp_path: Path) -> None:
    async with started(scene(tmp_path, killers={30: Killer(at=4, phase="sample", times=1)})) as client:
        results = await asyncio.gather(*(outcome(client, i * 10) for i in range(5)))
        for i, result in enumerate(results):
            check(result, i * 10)
        assert client.restarts == 1


async def test_illegal_instruction_in_the_first_decode_leads_to_safe_mode(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with started(scene(tmp_path, sigill_unless_safe=True)) as client:
        for i, result in enumerate(await asyncio.gather(*(outcome(client, i * 10) for i in range(4)))):
            check(result, i * 10)
        assert client.restarts == 1
        assert client.facts is not None
        assert client.facts.safe_mode
        kill(client)
        await until(lambda: client.restarts == 2 and client.state == "ready")
        assert client.facts.safe_mode
    assert caplog.text.count("make engine") == 1


async def test_illegal_instruction_while_loading_leads_to_safe_mode(tmp_path: Path) -> None:
    async with started(scene(tmp_path, sigill_unless_safe=True, die_loading="SIGILL")) as client:
        assert client.facts is not None
        assert client.facts.safe_mode
        check(await outcome(client, 0), 0)


async def test_a_calibration_that_kills_is_not_repeated(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "puna")
    async with started(scene(tmp_path, die_calibrating=True)) as client:
        check(await outcome(client, 10), 10)
    assert written(tmp_path, "tunings") == ["True:None", "False:None"]
    assert "while measuring how the model is computed fastest" in caplog.text
    assert "without calibration from now on" in caplog.text


async def test_what_one_worker_found_out_is_told_to_the_next(tmp_path: Path) -> None:
    async with started(scene(tmp_path)) as client:
        kill(client)
        check(await outcome(client, 10), 10)
    assert written(tmp_path, "tunings") == ["True:None", "True:7"]


async def test_requests_queue_while_a_worker_restarts_and_can_be_dropped(tmp_path: Path) -> None:
    async with started(scene(tmp_path)) as client:
        kill(client)
        await until(lambda: client.state == "restarting")
        stream = client.generate(Generation(prompt=(99,)))
        kept = asyncio.create_task(outcome(client, 0))
        await stream.aclose()
        check(await kept, 0)
        assert all(line.startswith("0:") for line in written(tmp_path, "submits"))


async def test_draining_goes_on_across_a_death(tmp_path: Path) -> None:
    async with started(scene(tmp_path)) as client:
        reading = asyncio.create_task(outcome(client, 0))
        await until(lambda: client.stats.n_running == 1)
        draining = asyncio.create_task(client.drain(20))
        kill(client)
        assert await draining == 0
        check(await reading, 0)


async def test_a_worker_that_keeps_dying_idle_is_started_ever_more_slowly(tmp_path: Path) -> None:
    client_scenario = scene(tmp_path, die_idle=4)
    async with started(client_scenario) as client:
        began = time.monotonic()
        await until(lambda: client.state == "restarting")
        result = await outcome(client, 0)
        # 0, 0.1, 0.2 and 0.4 seconds of waiting.
        assert time.monotonic() - began > 0.65
        check(result, 0)
        assert client.restarts == 4


async def test_a_worker_that_sends_noise_is_replaced(tmp_path: Path) -> None:
    async with started(scene(tmp_path, garbage=True)) as client:
        check(await outcome(client, 0), 0)
        assert client.restarts == 1


async def test_a_model_that_is_gone_fails_requests_with_the_reason(tmp_path: Path) -> None:
    async with started(scene(tmp_path, fail_loading="gone.gguf: no such file", fail_after=1)) as client:
        reading = asyncio.create_task(outcome(client, 0, 1000))
        await until(lambda: client.stats.n_running == 1)
        kill(client)
        result = await reading
        assert isinstance(result, Unavailable)
        assert "no such file" in str(result)
        assert client.state == "failed"
        assert client.failure == "gone.gguf: no such file"
        with pytest.raises(Unavailable, match="no such file"):
            client.generate(generation(0, 1))


async def test_last_words_are_logged_and_the_return(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "puna")
    async with started(scene(tmp_path)) as client:
        kill(client)
        await until(lambda: client.restarts == 1 and client.state == "ready")
    assert "killed by SIGKILL while idle" in caplog.text
    assert caplog.text.count("the engine is there again") == 1
    assert "life 0 begins" in caplog.text


async def test_no_orphan_when_the_server_is_killed(tmp_path: Path) -> None:
    script = Path(__file__).with_name("small_server.py")
    for mode in ("idle", "busy", "loading"):
        server = await asyncio.create_subprocess_exec(
            sys.executable, str(script), str(tmp_path), mode, stdout=asyncio.subprocess.PIPE
        )
        assert server.stdout is not None
        worker = int(await asyncio.wait_for(server.stdout.readline(), 20))
        assert alive(worker)
        server.kill()
        await server.wait()
        await until(partial(gone, worker))
