"""Prepares constraints in a process of its own. `python -m puna.grammar.process`, jobs on standard input.

The engine's compiler has limits, but not on everything: some input takes it minutes, or overflows its stack. Here that costs
a process that can be replaced.
"""

from __future__ import annotations

import contextlib
import signal
import struct
import sys
from typing import BinaryIO

import msgspec

from puna.errors import InvalidRequest
from puna.grammar.compile import prepare
from puna.grammar.threads import STACK, deep_pool
from puna.types import Constraint

MAX_SECONDS = 1.8
"""Processor time for one job; the process ends when it takes longer."""

MAX_MEMORY = 1024 * 1024 * 1024
"""Bytes of address space, most of which is never touched."""

HEADER = struct.Struct("<I")


class Job(msgspec.Struct, frozen=True, array_like=True):
    """A constraint to prepare."""

    constraint: Constraint
    tokens: dict[str, int] = {}
    """Ids of the tokens that a grammar may name, by text."""
    preserved: dict[str, int] = {}
    """Ids of the tokens that a grammar may spell, by text."""


class Done(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The prepared constraint."""

    constraint: Constraint


class Refused(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Why it cannot be enforced."""

    message: str
    param: str | None = None


Reply = Done | Refused


def packed(value: Job | Reply) -> bytes:
    """A message as it is sent: its length first."""
    data = msgspec.msgpack.encode(value)
    return HEADER.pack(len(data)) + data


def answer(job: Job) -> Reply:
    """Do one job."""
    try:
        return Done(prepare(job.constraint, job.tokens.get, job.preserved))
    except InvalidRequest as error:
        return Refused(error.message, error.param)
    except MemoryError:
        return Refused("the grammar is too complex: it takes too much memory")


def main() -> None:
    """Answer jobs until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's business
    _limit_memory()
    pool = deep_pool(1, "grammar", STACK // 2)  # what is too deep must be found out here, and not in the worker
    jobs, replies = sys.stdin.buffer, sys.stdout.buffer
    while (job := _read(jobs)) is not None:
        signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)  # its signal ends the process
        reply = pool.submit(answer, job).result()
        signal.setitimer(signal.ITIMER_PROF, 0)
        replies.write(packed(reply))
        replies.flush()


def _read(stream: BinaryIO) -> Job | None:
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    return msgspec.msgpack.decode(stream.read(HEADER.unpack(header)[0]), type=Job)


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):  # not every system has such limits
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, MAX_MEMORY))


if __name__ == "__main__":
    main()
