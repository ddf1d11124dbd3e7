"""What the server remembers of slots, and slot jobs that wait for their answers."""

from __future__ import annotations

import asyncio

import pytest

from puna.client.assembly import Assembly
from puna.client.slots import SlotActions, SlotTable
from puna.errors import InvalidRequest, PunaError, ServerFault, Unavailable
from puna.ipc.frames import Output, SlotDone, SlotJob
from puna.types import Generation, SlotOutcome, SlotState


def test_idle_slots_keep_what_they_did_last() -> None:
    table = SlotTable()
    table.reset(3)
    assembly = Assembly(Generation(prompt=(1, 2)), lambda token: b"x")
    table.take([SlotState(id=1, busy=True, request=7, n_prompt=2)], lambda id: assembly if id == 7 else None)
    assembly.feed(Output(id=7, tokens=(5, 6)))
    table.take([SlotState(id=2, busy=True, request=8)], lambda id: None)
    assert [(state.id, state.busy, state.request, state.n_prompt) for state in table.states] == [
        (0, False, -1, 0),
        (1, False, 7, 2),
        (2, True, 8, 0),
    ]
    task = table.task(1)
    assert task is not None and (task.generation.prompt, task.produced) == ((1, 2), (5, 6))
    assert table.task(0) is table.task(2) is None
    table.reset(3)
    assert table.task(1) is None and not any(state.busy for state in table.states)


async def test_answers_reach_who_asked() -> None:
    sent: list[SlotJob] = []
    actions = SlotActions(sent.append)
    save = asyncio.create_task(actions.run("save", 1, "/x/one"))
    erase = asyncio.create_task(actions.run("erase", 2, ""))
    bad = asyncio.create_task(actions.run("restore", 0, "/x/two"))
    gone = asyncio.create_task(actions.run("restore", 0, "/x/three"))
    await asyncio.sleep(0)
    assert [(job.action, job.slot, job.path) for job in sent[:2]] == [("save", 1, "/x/one"), ("erase", 2, "")]
    gone.cancel()
    await asyncio.sleep(0)
    actions.done(SlotDone(id=sent[3].id, outcome=SlotOutcome(n_tokens=1)))
    actions.done(SlotDone(id=sent[1].id, outcome=SlotOutcome(n_tokens=5)))
    actions.done(SlotDone(id=sent[2].id, error="two is damaged"))
    actions.done(SlotDone(id=sent[0].id, error="the disk is full", error_kind="fault"))
    assert (await erase).n_tokens == 5
    with pytest.raises(InvalidRequest, match="two is damaged"):
        await bad
    with pytest.raises(ServerFault, match="the disk is full"):
        await save


@pytest.mark.parametrize("error", [ServerFault("the engine ended"), Unavailable("shutting down")])
async def test_nobody_waits_for_a_worker_that_is_gone(error: PunaError) -> None:
    actions = SlotActions(lambda job: None)
    waiting = [asyncio.create_task(actions.run("save", slot, "/x")) for slot in range(3)]
    await asyncio.sleep(0)
    actions.fail(error)
    for one in waiting:
        with pytest.raises(type(error)):
            await one
    actions.fail(error)
