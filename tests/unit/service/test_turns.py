"""Only the newest request of a key goes on."""

from __future__ import annotations

import asyncio
import gc

from puna.config import ServerSettings
from puna.service.answers import Answer, collect
from puna.service.params import GenerationParams
from puna.service.service import Service
from puna.types import Chunk
from tests.fakes import FakeEngine, say


def service(engine: FakeEngine) -> Service:
    return Service(engine, ServerSettings())


def shown(answers: list[Answer]) -> list[tuple[str, str]]:
    return [(answer.text, answer.stop_type) for answer in answers]


async def test_a_running_request_ends_with_what_it_has() -> None:
    engine = FakeEngine(script=lambda _: [Chunk(text="some", tokens=(1,)), 60.0, *say("more")])
    one = service(engine)
    turn = await one.turns.take(7)
    collecting = asyncio.create_task(collect(await one.generate([(1,)], GenerationParams(), turn=turn)))
    await asyncio.sleep(0.01)
    await one.turns.take(7)
    assert engine.streams[0].closed
    assert shown(await collecting) == [("some", "none")]


async def test_a_waiting_request_ends_empty() -> None:
    engine = FakeEngine(script=lambda _: [60.0])
    one = service(engine)
    turn = await one.turns.take(7)
    running = await one.generate([(1,)], GenerationParams(n=2), turn=turn)
    await one.turns.take(7)
    assert shown(await collect(running)) == [("", "none")] * 2
    assert all(stream.closed for stream in engine.streams)


async def test_a_request_that_is_superseded_before_it_begins_never_does() -> None:
    engine = FakeEngine()
    one = service(engine)
    turn = await one.turns.take(7)
    await one.turns.take(7)
    assert shown(await collect(await one.generate([(1,)], GenerationParams(), turn=turn))) == [("", "none")]
    assert engine.streams == []


async def test_other_keys_and_requests_without_one_are_left_alone() -> None:
    engine = FakeEngine(script=lambda _: [0.02, *say("whole")])
    one = service(engine)
    turns = [await one.turns.take(key) for key in (0, 4)]
    runnings = [await one.generate([(1,)], GenerationParams(), turn=turn) for turn in (*turns, None)]
    await one.turns.take(8)
    assert [shown(await collect(running)) for running in runnings] == [[("whole", "eos")]] * 3


async def test_what_has_ended_stays_as_it_is_and_is_forgotten() -> None:
    engine = FakeEngine(script=lambda _: say("whole"))
    one = service(engine)
    running = await one.generate([(1,)], GenerationParams(), turn=await one.turns.take(7))
    answers = await collect(running)
    await one.turns.take(7)
    assert shown(answers) == [("whole", "eos")]
    del running
    gc.collect()
    assert len(one.turns) == 0


async def test_the_newest_of_many_at_once_goes_on() -> None:
    engine = FakeEngine(script=lambda number: [0.005, *say(f"answer {number}")])
    one = service(engine)

    async def ask() -> list[tuple[str, str]]:
        turn = await one.turns.take(7)
        await asyncio.sleep(0)
        return shown(await collect(await one.generate([(1,)], GenerationParams(), turn=turn)))

    *older, newest = await asyncio.gather(*(ask() for _ in range(20)))
    assert newest[0][1] == "eos" and [one[0][1] for one in older] == ["none"] * 19
