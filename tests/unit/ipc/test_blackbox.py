"""The black box outlives its writer, whatever the writer was in the middle of."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from puna.ipc.blackbox import MAX_IDS, PHASES, SIDE_SIZE, SIDES_AT, BlackBox, Moment, Phase


@pytest.fixture
def box() -> Iterator[BlackBox]:
    box = BlackBox.create()
    yield box
    box.close()


def reader(box: BlackBox) -> BlackBox:
    return BlackBox(os.dup(box.fd))


def test_begins_with_loading(box: BlackBox) -> None:
    assert box.moment() == Moment("load", (), 0)


@pytest.mark.parametrize("phase", PHASES)
def test_the_other_end_reads_what_was_recorded(box: BlackBox, phase: Phase) -> None:
    other = reader(box)
    for ids in ((), (1,), (5, 0, 2**40), tuple(range(MAX_IDS))):
        box.record(phase, ids)
        box.decoded()
        assert other.moment().phase == phase
        assert other.moment().ids == ids
    assert other.moment().n_decoded == 4
    other.close()


def test_ids_beyond_the_most_are_left_out(box: BlackBox) -> None:
    box.record("decode", range(MAX_IDS + 5))
    assert box.moment().ids == tuple(range(MAX_IDS))


def test_a_worker_goes_on_where_the_counter_is(box: BlackBox) -> None:
    box.decoded()
    other = reader(box)
    other.decoded()
    assert box.moment().n_decoded == 2
    other.close()


def test_a_torn_write_leaves_the_one_before(box: BlackBox) -> None:
    box.record("decode", (1, 2, 3))
    box.record("sample", (4,))
    newest = box._map[0]
    for at in range(SIDES_AT + newest * SIDE_SIZE, SIDES_AT + newest * SIDE_SIZE + 24):
        if at - SIDES_AT - newest * SIDE_SIZE in range(12, 16):
            continue  # padding
        kept = box._map[at]
        box._map[at] = kept ^ 0xFF
        assert box.moment() == Moment("decode", (1, 2, 3), 0), at
        box._map[at] = kept
    assert box.moment() == Moment("sample", (4,), 0)


def test_scribbled_over_is_unknown(box: BlackBox) -> None:
    box.record("decode", (1, 2, 3))
    box.record("sample", (4,))
    for fill in (b"\x00", b"\xff", b"\x7f"):
        box._map[SIDES_AT:] = fill * (len(box._map) - SIDES_AT)
        moment = box.moment()
        assert (moment.phase, moment.ids) == ("unknown", ()) or fill == b"\x00"


def test_all_zeros_name_nobody(box: BlackBox) -> None:
    box._map[:] = bytes(len(box._map))
    assert box.moment().ids == ()


WRITER = """
import sys
from puna.ipc.blackbox import BlackBox
box = BlackBox(int(sys.argv[1]))
print("begun", flush=True)
while True:
    box.record("decode", range(1000))
    box.record("sample", (7,))
"""


def test_killed_in_the_middle_of_writing(box: BlackBox) -> None:
    with subprocess.Popen([sys.executable, "-c", WRITER, str(box.fd)], pass_fds=(box.fd,), stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.02)
        writer.kill()
    assert box.moment() in (Moment("decode", tuple(range(1000)), 0), Moment("sample", (7,), 0))


def test_recording_is_cheap(box: BlackBox) -> None:
    ids = list(range(16))
    best = float("inf")
    for _ in range(20):
        began = time.perf_counter()
        for _ in range(100):
            box.record("decode", ids)
        best = min(best, (time.perf_counter() - began) / 100)
    assert best < 10e-6


def test_closing_twice() -> None:
    box = BlackBox.create()
    box.close()
    box.close()
    assert box.fd == -1
