"""Where constraints are prepared: on a thread of this process, or in processes that may die of it."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Protocol

import msgspec

from puna.errors import InvalidRequest, ServerFault, Unavailable
from puna.grammar import deep_pool
from puna.grammar.process import HEADER, Done, Job, Refused, Reply, answer, packed
from puna.types import Constraint

COMMAND = (sys.executable, "-m", "puna.grammar.process")

PATIENCE = 20.0
"""Seconds after which a process is given up that has not come to its own limit: the machine is too busy."""

LAST_WORDS = 0.2
"""Seconds in which a process that says nothing any more may end by itself."""

CACHED = 256
CACHED_BYTES = 32 * 1024 * 1024
"""What is kept of prepared constraints."""


class Preparer(Protocol):
    """Prepares constraints."""

    async def prepare(self, job: Job) -> Constraint:
        """The prepared constraint. Raises `InvalidRequest` for one that cannot be enforced, or takes too much to find out."""
        ...

    async def warm(self) -> None:
        """Do what the first constraint would have to wait for."""
        ...

    async def aclose(self) -> None: ...


class ThreadPreparer:
    """Uses threads. What the engine's compiler cannot bear ends this process too."""

    async def prepare(self, job: Job) -> Constraint:
        return _result(await asyncio.get_running_loop().run_in_executor(_threads(), answer, job))

    async def warm(self) -> None:
        return None

    async def aclose(self) -> None:
        return None


@cache
def _threads() -> ThreadPoolExecutor:
    return deep_pool(2, "grammar")


class ProcessPreparer:
    """Uses up to `n` processes, which are started when they are needed and replaced when they end."""

    def __init__(self, n: int = 2) -> None:
        self._places = asyncio.Semaphore(n)
        self._idle: list[asyncio.subprocess.Process] = []
        self._known: OrderedDict[bytes, Reply] = OrderedDict()
        self._known_bytes = 0

    async def prepare(self, job: Job) -> Constraint:
        key = packed(job)
        reply = self._known.get(key)
        if reply is None:
            async with self._places:
                reply = await self._ask(key)
            self._remember(key, reply)
        else:
            self._known.move_to_end(key)
        return _result(reply)

    async def warm(self) -> None:
        """Start a process and let it import what it needs."""
        await self.prepare(Job(Constraint("regex", "a")))

    async def _ask(self, job: bytes) -> Reply:
        process = self._idle.pop() if self._idle else await self._start()
        try:
            data = await asyncio.wait_for(_exchange(process, job), PATIENCE)
        except asyncio.TimeoutError as error:  # nothing is known about the grammar, so nothing may be remembered
            await _end(process)
            raise Unavailable("the machine is too busy to check the grammar", retry_after=5) from error
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            await _end(process)
            if process.returncode is not None and process.returncode > 0:
                raise ServerFault("grammars cannot be checked: the process that does it does not start") from error
            return Refused("the grammar is too complex: finding out whether it can be used takes too much time or memory")
        except BaseException:
            await _end(process)
            raise
        self._idle.append(process)
        return msgspec.msgpack.decode(data, type=Reply)

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *COMMAND,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )

    def _remember(self, key: bytes, reply: Reply) -> None:
        size = 4 * len(key)  # what it is made into is a few times as large
        if size > CACHED_BYTES // 4:
            return
        if self._known.pop(key, None) is None:
            self._known_bytes += size
        self._known[key] = reply
        while len(self._known) > CACHED or self._known_bytes > CACHED_BYTES:
            oldest, _ = self._known.popitem(last=False)
            self._known_bytes -= 4 * len(oldest)

    async def aclose(self) -> None:
        """End the processes."""
        for process in self._idle:
            process.kill()
        await asyncio.gather(*(process.wait() for process in self._idle))
        self._idle.clear()


async def _exchange(process: asyncio.subprocess.Process, job: bytes) -> bytes:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(job)
    await process.stdin.drain()
    (size,) = HEADER.unpack(await process.stdout.readexactly(HEADER.size))
    return await process.stdout.readexactly(size)


async def _end(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(asyncio.TimeoutError):  # it may be ending by itself, and then says why
        await asyncio.wait_for(process.wait(), LAST_WORDS)
    if process.returncode is None:
        process.kill()
    await process.wait()


def _result(reply: Reply) -> Constraint:
    if isinstance(reply, Done):
        return reply.constraint
    raise InvalidRequest(reply.message, param=reply.param)
