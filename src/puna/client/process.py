"""One worker process: spawn it, talk to it, and say what became of it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from puna.config import EngineSettings
from puna.errors import PunaError
from puna.ipc.blackbox import BlackBox, Moment
from puna.ipc.channel import FrameDecoder, FrameError, encode
from puna.ipc.frames import Close, Failed, Load, Loading, Ready, SlotDone, Step, ToServer, ToWorker
from puna.log import logger
from puna.types import ModelFacts

COMMAND = (sys.executable, "-m", "puna.engine.worker")

TAIL_LINES = 60
LINE_LENGTH = 500
"""Characters kept of one line that the worker printed."""

WARNING = "puna worker: "
"""How lines begin that are for whoever runs the server."""

GRACE = 2.0
"""Seconds that a worker gets to end before it is asked more firmly."""

LAST_WORDS = 1.0
"""Seconds that a dead worker's sockets and pipes get to run dry."""

FAULTS = frozenset({signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGSYS, signal.SIGTRAP})
"""Signals that a process brings upon itself."""

DOING = {
    "load": "while loading the model",
    "calibrate": "while measuring how the model is computed fastest",
    "decode": "in a decode",
    "sample": "while sampling",
    "constrain": "while applying a constraint",
    "encode": "while encoding a picture or a sound",
    "prepare": "while compiling a grammar, or making a picture or a sound ready",
    "idle": "while idle",
    "unknown": "at an unknown moment",
}


class Exit(msgspec.Struct, frozen=True):
    """How a worker ended."""

    code: int
    """As `subprocess` has it: the exit status, or minus the signal's number."""
    moment: Moment
    """What it was doing, and for which requests."""
    tail: tuple[str, ...] = ()
    """The last lines it printed."""

    @property
    def signal(self) -> int:
        """The signal that ended it, 0 for none."""
        return max(0, -self.code)

    @property
    def fault(self) -> bool:
        """Whether it failed by itself, rather than by a signal that somebody sent."""
        return self.code >= 0 or self.signal in FAULTS

    @property
    def cause(self) -> str:
        """What ended it, such as `was killed by SIGSEGV` or `exited with status 1`."""
        if self.code >= 0:
            return f"exited with status {self.code}"
        try:
            return f"was killed by {signal.Signals(self.signal).name}"
        except ValueError:
            return f"was killed by signal {self.signal}"

    def describe(self) -> str:
        """Say in words what ended the worker and at what."""
        return f"{self.cause} {DOING[self.moment.phase]}"


class LoadFailed(PunaError):
    """The worker says that the model cannot be loaded; its reason is the message."""


class WorkerDied(PunaError):
    """The worker ended before the model was loaded."""

    def __init__(self, end: Exit) -> None:
        super().__init__(f"the engine worker {end.describe()}")
        self.exit = end


MALLOC_TUNABLES = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=262144:glibc.malloc.mmap_max=30000"
"""Large pages: a context is cleared in half the time. A mapping of its own for everything large: memory of prompts that fall
out of the cache goes back at once, where the allocator's moving threshold leaves holes that are as large as the cache."""


def worker_environment(settings: EngineSettings) -> dict[str, str]:
    """Return the environment of a worker: ours, how long OpenMP threads spin and what pages memory comes in, unless said."""
    environment = dict(os.environ)
    if sys.platform == "linux":
        environment.setdefault("GLIBC_TUNABLES", MALLOC_TUNABLES)
    if "OMP_WAIT_POLICY" not in environment:
        environment.setdefault("GOMP_SPINCOUNT", str(settings.threads_poll))
    return environment


class _Link(asyncio.Protocol):
    """The server's end of the socket: cuts what comes into frames and hands them on at once."""

    def __init__(self, worker: WorkerProcess) -> None:
        self._decoder: FrameDecoder[ToServer] = FrameDecoder(ToServer)
        self._worker = worker
        self.closed = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        try:
            frames = self._decoder.feed(data)
        except FrameError as error:
            self._worker.garbage(error)
            return
        for frame in frames:
            self._worker.received(frame)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set()


class WorkerProcess:
    """A running worker. Made by `spawn`; `load` comes first, then `send`, and `wait` says when it is over.

    The worker sits in a session of its own, so that Ctrl-C in a terminal reaches the server only, and exits by itself
    when the server's end of the socket closes, for whatever reason.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        box: BlackBox,
        on_step: Callable[[Step], None],
        on_slot_done: Callable[[SlotDone], None] | None = None,
    ) -> None:
        self._process = process
        self._box = box
        self._on_step = on_step
        self._on_slot_done = on_slot_done
        self._transport: asyncio.Transport
        self._on_loading: Callable[[float], None] | None = None
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        loop = asyncio.get_running_loop()
        self._loaded: asyncio.Future[Ready | Failed] = loop.create_future()
        self._exit: asyncio.Future[Exit] = loop.create_future()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False

    @classmethod
    async def spawn(
        cls,
        settings: EngineSettings,
        *,
        on_step: Callable[[Step], None],
        on_slot_done: Callable[[SlotDone], None] | None = None,
        command: Sequence[str] = COMMAND,
    ) -> WorkerProcess:
        """Start a worker. `on_step` is called on the event loop for each step, until `wait` returns; the other likewise.

        Raises OSError when the command cannot be run.
        """
        ours, theirs = socket.socketpair()
        box = BlackBox.create()
        try:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    *command,
                    "--channel",
                    str(theirs.fileno()),
                    "--blackbox",
                    str(box.fd),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.STDOUT,
                    pass_fds=(theirs.fileno(), box.fd),
                    start_new_session=True,
                    env=worker_environment(settings),
                )
            worker = cls(process, box, on_step, on_slot_done)
            await worker._connect(ours)
        except BaseException:
            # A process that runs by now exits, because its socket is closed.
            ours.close()
            box.close()
            raise
        return worker

    async def _connect(self, ours: socket.socket) -> None:
        link = _Link(self)
        ours.setblocking(False)
        self._transport, _ = await asyncio.get_running_loop().create_unix_connection(lambda: link, sock=ours)
        self._tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._watch(link))]

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether its end has not been seen yet."""
        return not self._exit.done()

    def send(self, frame: ToWorker) -> None:
        """Queue one frame; it is lost, as everything else is, when the worker is dead."""
        if not self._transport.is_closing():
            self._transport.write(encode(frame))

    async def load(self, load: Load, on_loading: Callable[[float], None] | None = None) -> ModelFacts:
        """Have the model loaded. `on_loading` gets the share read so far, 0 to 1.

        Raises LoadFailed with the worker's reason, and WorkerDied when there is nobody left to give one.
        """
        self._on_loading = on_loading
        self.send(load)
        await asyncio.wait((self._loaded, self._exit), return_when=asyncio.FIRST_COMPLETED)
        if not self._loaded.done():
            raise WorkerDied(self._exit.result())
        answer = self._loaded.result()
        if isinstance(answer, Failed):
            raise LoadFailed(answer.reason)
        return answer.facts

    async def wait(self) -> Exit:
        """Wait for its end. Every frame that it sent has been handed on by then."""
        return await asyncio.shield(self._exit)

    async def stop(self, flush: float = 0.0) -> Exit:
        """End it: close the socket, then SIGTERM, then SIGKILL, each after `GRACE` seconds more.

        Before that it gets `flush` seconds to bring resting prompts to the disk.
        """
        self._stopping = True
        if flush > 0 and self.alive:
            self.send(Close(flush))
            try:
                await asyncio.wait((self._exit,), timeout=flush + GRACE)
            except asyncio.CancelledError:
                self.kill()
                raise
        self._transport.abort()
        try:
            for ask in (self._process.terminate, self._process.kill):
                done, _ = await asyncio.wait((self._exit,), timeout=GRACE)
                if done:
                    break
                self._signal(ask)
            return await self.wait()
        except asyncio.CancelledError:
            self.kill()
            raise

    def kill(self) -> None:
        """End it at once."""
        self._signal(self._process.kill)

    def _signal(self, ask: Callable[[], None]) -> None:
        try:
            ask()
        except ProcessLookupError:
            logger.debug("engine worker %d had ended already", self.pid)

    def received(self, frame: ToServer) -> None:
        """Hand on one frame that the worker sent."""
        if isinstance(frame, Step):
            self._on_step(frame)
        elif isinstance(frame, SlotDone):
            if self._on_slot_done is not None:
                self._on_slot_done(frame)
        elif isinstance(frame, Loading):
            if self._on_loading is not None:
                self._on_loading(frame.progress)
        elif not self._loaded.done():
            self._loaded.set_result(frame)

    def garbage(self, error: FrameError) -> None:
        """End a worker that sends no frames but noise."""
        logger.error("engine worker %d: %s; it is stopped", self.pid, error)
        self.kill()

    async def _listen(self) -> None:
        """Keep the last lines that the worker prints."""
        stream = self._process.stdout
        assert stream is not None
        rest = b""
        while data := await stream.read(65536):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                self._heard(line)
            # A line that never ends must not grow.
            rest = rest[: 4 * LINE_LENGTH]
        if rest:
            self._heard(rest)

    def _heard(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace").rstrip()[:LINE_LENGTH]
        if text.startswith(WARNING):
            logger.warning("engine: %s", text.removeprefix(WARNING))
        elif text:
            logger.debug("engine: %s", text)
        if text:
            self._tail.append(text)

    async def _watch(self, link: _Link) -> None:
        """Wait for the worker's end and tell it once, after all it had to say."""
        listening = self._tasks[0]
        ended = asyncio.create_task(self._process.wait())
        closed = asyncio.create_task(link.closed.wait())
        await asyncio.wait((ended, closed), return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            # Without its socket it is of no use, unless it is `stop` that closed it and now gives it time.
            await asyncio.wait((ended,), timeout=LAST_WORDS)
            if not ended.done() and not self._stopping:
                self.kill()
        code = await ended
        await asyncio.wait((closed, listening), timeout=LAST_WORDS)
        closed.cancel()
        listening.cancel()
        self._transport.abort()
        end = Exit(code, self._box.moment(), tuple(self._tail))
        self._box.close()
        self._exit.set_result(end)
