"""The client on a worker that behaves: admission, streams, aborts, draining, and failures to load."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import time
from pathlib import Path

import pytest

from puna.client.handle import EngineClient
from puna.client.process import MALLOC_TUNABLES, worker_environment
from puna.config import EngineSettings
from puna.errors import ContextExceeded, InvalidRequest, QueueFull, StartupError, Unavailable
from puna.types import Generation, SlotState
from tests.unit.client.helpers import Numbers, alive, collect, generation, lines, make, started, text, tokens, until
from tests.unit.client.scenario import Killer, Scenario, answer


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return Scenario(folder=str(tmp_path))


async def test_more_streams_than_slots(scenario: Scenario) -> None:
    async with started(scenario) as client:
        assert client.state == "ready"
        assert client.facts is not None
        assert client.slots == tuple(SlotState(id=id) for id in range(4))
        streams = [client.generate(generation(i * 10, 20)) for i in range(10)]
        assert client.in_flight == 10
        results = await asyncio.gather(*map(collect, streams))
        for i, chunks in enumerate(results):
            want = answer(generation(i * 10, 20).prompt, 20)
            assert tokens(chunks) == want
            assert text(chunks) == "".join(f"{token} " for token in want)
            assert [chunk.stop_type for chunk in chunks] == ["none"] * 19 + ["limit"]
        assert client.in_flight == 0
        assert client.restarts == 0


async def test_loading_is_told(scenario: Scenario) -> None:
    client = make(scenario)
    told: list[float] = []
    assert client.state == "loading"
    with pytest.raises(Unavailable):
        client.generate(generation(0, 1))
    with pytest.raises(Unavailable):
        _ = client.tokenizer
    await client.start(told.append)
    assert told == [0.5]
    assert client.progress == 0.5
    assert isinstance(client.tokenizer, Numbers)
    await client.stop()


async def test_a_stop_string_ends_the_worker_s_work_too(scenario: Scenario) -> None:
    want = answer(generation(0, 50).prompt, 50)
    async with started(scenario) as client:
        chunks = await collect(client.generate(generation(0, 50, stop=(f"{want[3]} {want[4]}",))))
        assert text(chunks) == "".join(f"{token} " for token in want[:3])
        assert tokens(chunks) == want[:5]
        assert (chunks[-1].stop_type, chunks[-1].stopping_word) == ("word", f"{want[3]} {want[4]}")
        await until(lambda: lines(scenario, "aborts") == ["0"])
        await until(lambda: client.stats.n_running == 0)


async def test_thinking_is_ended_once_and_again_by_every_new_worker(tmp_path: Path) -> None:
    killers = {7: Killer(at=6, signal="SIGKILL", times=1)}
    scenario = Scenario(folder=str(tmp_path), killers=killers, step_ms=20)
    async with started(scenario) as client:
        stream = client.generate(Generation(prompt=(7, 8), max_tokens=12))
        await anext(stream)
        stream.end_thinking()
        stream.end_thinking()
        assert len(tokens(await collect(stream))) == 11
        assert client.restarts == 1 and lines(scenario, "endings") == ["0", "0"]
        stream.end_thinking()
        assert lines(scenario, "endings") == ["0", "0"]


async def test_admission_is_decided_at_once(tmp_path: Path) -> None:
    async with started(Scenario(folder=str(tmp_path), n_slots=2, n_ctx=10), max_queue=3) as client:
        with pytest.raises(ContextExceeded):
            client.generate(generation(0, 5, prompt=10))
        with pytest.raises(InvalidRequest):
            client.generate(Generation(prompt=()))
        streams = [client.generate(Generation(prompt=(i,))) for i in range(5)]
        with pytest.raises(QueueFull) as error:
            client.generate(Generation(prompt=(1,)))
        assert 1 <= error.value.retry_after <= 60
        await streams[0].aclose()
        streams.append(client.generate(Generation(prompt=(1,))))
        assert client.in_flight == 5
        for stream in streams:
            await stream.aclose()
        assert client.in_flight == 0


async def test_closing_stops_a_running_and_a_queued_request(scenario: Scenario) -> None:
    async with started(scenario) as client:
        streams = [client.generate(Generation(prompt=(i,))) for i in range(6)]
        await until(lambda: [(slot.id, slot.busy) for slot in client.slots] == [(id, True) for id in range(4)])
        for stream in (streams[0], streams[5]):
            await stream.aclose()
            await stream.aclose()
            assert await collect(stream) == []
        await until(lambda: lines(scenario, "aborts") == ["0", "5"])
        await until(lambda: client.stats.n_running == 4)
        assert client.in_flight == 4
        await streams[1].aclose()
        await until(lambda: client.stats.n_running == 3)
        assert [(slot.id, slot.busy) for slot in client.slots] == [(0, True), (1, True), (2, True), (3, False)]
        # The others go on undisturbed.
        chunk = await anext(streams[2])
        assert chunk.tokens == (answer((2,), 1)[0],)
        for stream in streams:
            await stream.aclose()


async def test_cancelling_the_reader_stops_the_request(scenario: Scenario) -> None:
    async with started(scenario) as client:
        stream = client.generate(Generation(prompt=(1,)))
        reader = asyncio.create_task(collect(stream))
        await until(lambda: client.stats.n_running == 1)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        assert client.in_flight == 0
        await until(lambda: lines(scenario, "aborts") == ["0"])


async def test_a_dropped_stream_does_not_leak(scenario: Scenario) -> None:
    async with started(scenario) as client:
        client.generate(Generation(prompt=(1,)))
        gc.collect()
        await until(lambda: client.in_flight == 0)
        await until(lambda: lines(scenario, "aborts") == ["0"])


async def test_an_error_of_the_request_reaches_its_reader_only(tmp_path: Path) -> None:
    async with started(Scenario(folder=str(tmp_path), bad_grammar=True)) as client:
        stream = client.generate(generation(0, 5))
        with pytest.raises(InvalidRequest, match="the grammar is bad"):
            await stream.first()
        with pytest.raises(InvalidRequest, match="the grammar is bad"):
            await collect(stream)
        assert client.in_flight == 0
        assert client.restarts == 0


async def test_waiting_for_a_chunk_without_taking_it(tmp_path: Path) -> None:
    async with started(Scenario(folder=str(tmp_path), step_ms=100)) as client:
        stream = client.generate(generation(0, 3))
        await anext(stream)
        assert not await stream.ready(0.01)
        assert await stream.ready(10)
        first = await stream.first()
        assert first is not None
        assert await anext(stream) == first
        assert len(await collect(stream)) == 1
        assert await stream.first() is None
        assert await stream.ready()


async def test_a_reader_that_does_not_read_holds_nobody_up(scenario: Scenario) -> None:
    async with started(scenario) as client:
        lazy = client.generate(generation(10, 300))
        assert len(await collect(client.generate(generation(20, 300)))) == 300
        assert tokens(await collect(lazy)) == answer(generation(10, 1).prompt, 300)


async def test_every_token(scenario: Scenario) -> None:
    async with started(scenario) as client:
        first = answer(generation(0, 1).prompt, 1)[0]
        stop = (f"{first} nothing",)
        plain = await collect(client.generate(generation(0, 3, stop=stop)))
        told = await collect(client.generate(generation(0, 3, stop=stop), every_token=True))
        assert [chunk.tokens for chunk in plain if not chunk.text] == []
        assert [len(chunk.tokens) for chunk in told] == [1, 1, 1]
        assert text(told) == text(plain)


async def test_another_piece_function(scenario: Scenario) -> None:
    async with started(scenario) as client:
        chunks = await collect(client.generate(generation(0, 3), piece=lambda token: b"<>"))
        assert text(chunks) == "<><><>"


async def test_drain_waits_for_answers_and_admits_none(scenario: Scenario) -> None:
    async with started(scenario) as client:
        stream = client.generate(generation(0, 50))
        draining = asyncio.create_task(client.drain(10))
        await asyncio.sleep(0)
        assert client.state == "stopping"
        with pytest.raises(Unavailable, match="shutting down"):
            client.generate(generation(0, 1))
        assert await draining == 0
        assert tokens(await collect(stream)) == answer(generation(0, 1).prompt, 50)


async def test_drain_gives_up_and_stop_ends_the_rest(scenario: Scenario) -> None:
    async with started(scenario) as client:
        stream = client.generate(Generation(prompt=(1,)))
        began = time.monotonic()
        assert await client.drain(0.1) == 1
        assert time.monotonic() - began < 1
        await client.stop()
        with pytest.raises(Unavailable, match="shutting down"):
            await collect(stream)
        await client.stop()


async def test_a_bad_file_gives_the_worker_s_reason(tmp_path: Path) -> None:
    client = make(Scenario(folder=str(tmp_path), fail_loading="bad.gguf: not a GGUF file"))
    with pytest.raises(StartupError, match=r"bad\.gguf: not a GGUF file"):
        await client.start()
    assert client.state == "failed"
    assert client.failure == "bad.gguf: not a GGUF file"
    assert client.worker_pid is None
    with pytest.raises(Unavailable, match="not a GGUF file"):
        client.generate(generation(0, 1))
    await client.stop()


async def test_a_worker_that_dies_loading_is_told_in_words(tmp_path: Path) -> None:
    client = make(Scenario(folder=str(tmp_path), die_loading="SIGSEGV"))
    with pytest.raises(StartupError, match=r"(?s)killed by SIGSEGV while loading the model.*about to die"):
        await client.start()
    assert client.state == "failed"
    await client.stop()


async def test_a_command_that_cannot_be_run() -> None:
    client = EngineClient(EngineSettings(model="x"), lambda path: Numbers(), command=("/nowhere/at/all",))
    with pytest.raises(StartupError, match="cannot be started"):
        await client.start()
    await client.stop()


async def test_a_vocabulary_that_cannot_be_read(scenario: Scenario) -> None:
    def fail(path: str) -> Numbers:
        raise StartupError(f"{path}: no vocabulary")

    client = EngineClient(EngineSettings(model="x.gguf"), fail, command=scenario.command())
    with pytest.raises(StartupError, match=r"x\.gguf: no vocabulary"):
        await client.start()
    assert client.worker_pid is None
    await client.stop()


@pytest.mark.parametrize("cancel", [False, True])
async def test_stop_and_cancel_while_loading(tmp_path: Path, cancel: bool) -> None:
    client = make(Scenario(folder=str(tmp_path), hang_loading=True))
    starting = asyncio.create_task(client.start())
    await until(lambda: client.progress > 0)
    pid = client.worker_pid
    assert pid is not None
    if cancel:
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
    else:
        await client.stop()
        with pytest.raises(StartupError, match="stopped"):
            await starting
    assert not alive(pid)


async def test_a_worker_that_will_not_go_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = make(Scenario(folder=str(tmp_path), deaf=True))
    monkeypatch.setattr("puna.client.process.GRACE", 0.1)
    await client.start()
    pid = client.worker_pid
    assert pid is not None
    await client.stop()
    assert not alive(pid)


async def test_the_worker_sits_in_a_session_of_its_own(scenario: Scenario) -> None:
    async with started(scenario) as client:
        pid = client.worker_pid
        assert pid is not None
        assert os.getsid(pid) == pid


@pytest.mark.parametrize(
    ("user", "want"),
    [({}, "1000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "PASSIVE"}, ""), ({"OMP_WAIT_POLICY": ""}, "")],
)
async def test_spin_count(scenario: Scenario, monkeypatch: pytest.MonkeyPatch, user: dict[str, str], want: str) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in user.items():
        monkeypatch.setenv(name, value)
    async with started(scenario) as client:
        assert client.facts is not None
        assert client.facts.engine == want


def test_on_uvloop(scenario: Scenario) -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> None:
        async with started(scenario) as client:
            streams = [client.generate(generation(i, 100)) for i in range(3)]
            reading = asyncio.gather(*map(collect, streams))
            await streams[2].ready()
            pid = client.worker_pid
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            for i, chunks in enumerate(await reading):
                assert tokens(chunks) == answer(generation(i, 1).prompt, 100)
            assert client.restarts == 1

    loop = uvloop.new_event_loop()
    try:
        loop.run_until_complete(main())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()


@pytest.mark.parametrize("turns", (0, 1, 2, 4, 8, 16, 32))
async def test_stop_at_any_moment_of_a_restart(scenario: Scenario, turns: int) -> None:
    async with started(scenario) as client:
        pid = client.worker_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until(lambda: client.state == "restarting")
        for _ in range(turns):
            await asyncio.sleep(0)
        await client.stop()
        gc.collect()
        assert client.worker_pid is None


def test_large_pages_unless_the_user_tunes_the_allocator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    assert worker_environment(EngineSettings(model="x"))["GLIBC_TUNABLES"] == MALLOC_TUNABLES
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=0")
    assert worker_environment(EngineSettings(model="x"))["GLIBC_TUNABLES"] == "glibc.malloc.hugetlb=0"
