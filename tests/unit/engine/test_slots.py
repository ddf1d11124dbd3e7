"""Which slot a prompt gets, and what slots remember."""

from __future__ import annotations

from puna.engine.scheduler import Scheduler
from puna.engine.sequence import Sequence
from puna.engine.slots import SlotBoard, SlotPrompt
from puna.ipc.frames import Submit
from puna.types import Generation, SlotState

LONG = list(range(100))


def submit(id: int, *prompt: int, id_slot: int = -1) -> Sequence:
    return Sequence(Submit(id=id, generation=Generation(prompt=prompt, id_slot=id_slot)), arrived=0.0)


def test_wishes_wrap_around_and_wait_for_a_busy_slot() -> None:
    board = SlotBoard(2)
    assert board.choose(5, [1], ()) == 1
    assert board.choose(5, [1], {1}) is None
    board.reserved.add(0)
    assert board.choose(0, [1], ()) is None
    assert board.choose(-1, [1], {1}) is None


def test_the_least_recently_used_slot_is_taken_first() -> None:
    board = SlotBoard(3)
    assert [board.choose(-1, [slot], range(slot)) for slot in range(3)] == [0, 1, 2]
    board.leave(0, SlotPrompt([1]))
    assert board.choose(-1, [9], ()) == 1
    board.leave(1, SlotPrompt([2]))
    board.leave(2, SlotPrompt([3]))
    assert board.choose(-1, [9], ()) == 0


def test_a_slot_that_held_enough_of_the_prompt_is_preferred() -> None:
    board = SlotBoard(4, 0.5)
    board.leave(2, SlotPrompt(LONG[:60]))
    assert board.choose(-1, LONG, ()) == 2
    assert board.choose(-1, LONG, {2}) == 0
    assert board.choose(-1, LONG + LONG, ()) == 0, "60 of 200 tokens are not enough"
    off = SlotBoard(4, 0)
    off.leave(2, SlotPrompt(LONG))
    assert off.choose(-1, LONG, ()) == 0


def test_a_slot_forgets() -> None:
    board = SlotBoard(2)
    board.leave(1, SlotPrompt([1, 2, 3]))
    board.leave(1, None)
    assert board.held(1) == SlotPrompt([1, 2, 3], b""), "a failure leaves what was there"
    assert (board.clear(1), board.clear(1), board.held(1)) == (3, 0, None)


def test_what_changed_is_told_once() -> None:
    board = SlotBoard(2)
    board.leave(1, None, SlotState(id=1, request=4))
    assert board.take_changed() == [SlotState(id=1, request=4)]
    assert board.take_changed() == []


def test_who_waits_for_a_slot_lets_others_pass() -> None:
    scheduler = Scheduler(3)
    for one in (submit(1, 5, id_slot=0), submit(2, 6, id_slot=0), submit(3, 7)):
        scheduler.add(one)
    assert [(s.id, s.slot) for s in scheduler.admit()] == [(1, 0), (3, 1)]
    first = scheduler.find(1)
    assert first is not None
    scheduler.remove(first)
    assert [(s.id, s.slot) for s in scheduler.admit()] == [(2, 0)]


def test_the_engines_own_sequences_keep_their_slot() -> None:
    scheduler = Scheduler(2)
    own = submit(1, 5, id_slot=1)
    own.internal, own.slot = True, 0
    scheduler.slots.reserved.add(0)
    scheduler.add(own)
    assert [(s.id, s.slot) for s in scheduler.admit()] == [(1, 0)]
    scheduler.preempt(own)
    assert own.slot == 0
