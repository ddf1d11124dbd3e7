"""Keeps a worker alive: loads, waits for its death, and starts the next one."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from msgspec.structs import replace

from puna.client.backoff import MOST, Backoff
from puna.client.process import Exit, LoadFailed, WorkerDied, WorkerProcess
from puna.config import EngineSettings
from puna.errors import PunaError, StartupError
from puna.ipc.frames import Load, SlotDone, Step, ToWorker
from puna.log import logger
from puna.tuning import Tuning
from puna.types import ModelFacts

State = Literal["loading", "ready", "restarting", "failed"]

FLUSH_TIMEOUT = 5.0
"""Seconds that a worker gets to bring resting prompts to the disk before it ends."""

ADVICE = (
    "the engine was built for another CPU, or by a compiler that miscompiles AMX: it goes on in a slower safe mode. "
    "Rebuild it with `make engine`, or with the flags -mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
)


class Charge(Protocol):
    """Whoever has work for the worker."""

    async def loaded(self, facts: ModelFacts) -> None:
        """A worker has loaded the model; a PunaError raised here means that it cannot be served all the same."""
        ...

    def ready(self) -> None:
        """The worker takes work."""
        ...

    def stepped(self, step: Step) -> bool:
        """The worker took a step; whether that brought any request further."""
        ...

    def slot_done(self, answer: SlotDone) -> None:
        """The worker has done, or refused, a slot job."""
        ...

    def died(self, end: Exit, *, blame: bool) -> None:
        """The worker is dead, another one will come. Without `blame`, no request can have caused it."""
        ...

    def failed(self, reason: str) -> None:
        """The model cannot be loaded any more; it is tried again now and then."""
        ...


class Supervisor:
    """Runs one worker at a time until `stop`."""

    def __init__(self, settings: EngineSettings, command: Sequence[str], charge: Charge) -> None:
        self.state: State = "loading"
        self.failure = ""
        """Why the model cannot be loaded; empty unless `state` is `failed`."""
        self.restarts = 0
        """Workers started after the first one."""
        self.progress = 0.0
        """The share of the weights that is loaded, 0 to 1."""
        self._settings = settings
        self._command = command
        self._charge = charge
        self._safe_mode = False
        self._tuning: Tuning | None = None
        """How the last worker computed the model: the next one need not find out again."""
        self._backoff = Backoff()
        self._worker: WorkerProcess | None = None
        self._progressed = False
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self._ended = 0.0
        """When the last worker ended, on the monotonic clock."""

    @property
    def pid(self) -> int | None:
        """The process id of the present worker."""
        return self._worker.pid if self._worker is not None and self._worker.alive else None

    def send(self, frame: ToWorker) -> None:
        """Send to the present worker, if there is one; what a dead one missed, it needs no more."""
        if self._worker is not None:
            self._worker.send(frame)

    async def start(self, on_loading: Callable[[float], None] | None = None) -> None:
        """Start the first worker and wait until it has loaded the model.

        Raises StartupError when it cannot. Cancelling ends the worker.
        """
        first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._supervise(first, on_loading))
        try:
            await asyncio.wait((first, self._task), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            first.cancel()
            await self.stop()
            raise
        if not first.done():
            first.cancel()
            raise StartupError("the server was stopped before the model was loaded")
        if first.exception() is not None:
            # The failed worker is gone before anybody hears of it.
            await asyncio.wait((self._task,))
        first.result()

    async def stop(self) -> None:
        """End the worker and start no other; may be called more than once."""
        if self._task is not None:
            if not self._stopped:
                self._stopped = True
                self._task.cancel()
            await asyncio.wait((self._task,))

    async def _supervise(self, first: asyncio.Future[None], on_loading: Callable[[float], None] | None) -> None:
        try:
            while True:
                await asyncio.sleep(await self._life(first, on_loading))
                self.restarts += 1
        except StartupError as error:
            self._fail(error.message)
            if not first.done():
                first.set_exception(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, requests must not wait for ever
            logger.exception("the supervision of the engine failed")
            self._fail(f"internal fault: {error}")
            if not first.done():
                first.set_exception(StartupError(self.failure))
        finally:
            await self._end_worker()

    async def _life(self, first: asyncio.Future[None], on_loading: Callable[[float], None] | None) -> float:
        """See one worker from its start to its end; return the seconds to wait before the next one."""
        self._progressed = False
        lived = 0.0
        try:
            worker = await self._load(on_loading)
            began = time.monotonic()
            self.state = "ready"
            self.failure = ""
            if not first.done():
                first.set_result(None)
            else:
                logger.info("the engine is there again, %.1f s after the last one ended", began - self._ended)
            self._charge.ready()
            end = await worker.wait()
            lived = time.monotonic() - began
        except LoadFailed as error:
            await self._end_worker()
            if not first.done():
                raise StartupError(error.message) from error
            logger.error("the model cannot be loaded again: %s", error)
            self._fail(error.message)
            return MOST
        except WorkerDied as error:
            end = error.exit
            if not first.done() and not self._may_load_otherwise(end):
                raise StartupError(_last_words(end)) from error
        self._bury(end)
        return self._backoff.died(progress=self._progressed, lived=lived)

    def _may_load_otherwise(self, end: Exit) -> bool:
        """Whether a worker that died while loading may have a successor that does something else."""
        return (end.signal == signal.SIGILL and not self._safe_mode) or (
            end.moment.phase == "calibrate" and self._settings.calibrate
        )

    async def _load(self, on_loading: Callable[[float], None] | None) -> WorkerProcess:
        def loading(progress: float) -> None:
            self.progress = progress
            if on_loading is not None:
                on_loading(progress)

        self.progress = 0.0
        worker = await self._spawn()
        facts = await worker.load(Load(self._settings, self._safe_mode, self._tuning), loading)
        self._tuning = facts.tuning
        try:
            await self._charge.loaded(facts)
        except PunaError as error:
            raise LoadFailed(error.message) from error
        return worker

    async def _spawn(self) -> WorkerProcess:
        spawning = asyncio.create_task(
            WorkerProcess.spawn(self._settings, on_step=self._stepped, on_slot_done=self._charge.slot_done, command=self._command)
        )
        try:
            self._worker = await asyncio.shield(spawning)
        except OSError as error:
            raise LoadFailed(f"the engine worker cannot be started: {error}") from error
        except asyncio.CancelledError:
            # A process that is half started could not be waited for.
            await asyncio.wait((spawning,))
            if spawning.exception() is None:
                self._worker = spawning.result()
            raise
        return self._worker

    def _stepped(self, step: Step) -> None:
        if self._charge.stepped(step):
            self._progressed = True

    def _bury(self, end: Exit) -> None:
        """Say what happened and let the requests know."""
        self._ended = time.monotonic()
        logger.error("engine worker %s; starting another one", end.describe())
        if end.tail:
            logger.warning("the last lines of the engine worker:\n  %s", "\n  ".join(end.tail))
        blame = True
        if end.signal == signal.SIGILL and not self._safe_mode:
            self._safe_mode = True
            logger.error(ADVICE)
            # Before the first decode has succeeded, nothing was particular about the request.
            blame = end.moment.n_decoded > 0
        elif end.moment.phase == "calibrate" and self._settings.calibrate:
            self._settings = replace(self._settings, calibrate=False)
            logger.error("the model is loaded without calibration from now on")
        if self.state == "ready":
            self.state = "restarting"
        self._charge.died(end, blame=blame)

    def _fail(self, reason: str) -> None:
        self.state = "failed"
        self.failure = reason
        self._charge.failed(reason)

    async def _end_worker(self) -> None:
        if self._worker is not None:
            flush = FLUSH_TIMEOUT if self._settings.cache_dir and self.state == "ready" else 0.0
            await self._worker.stop(flush)


def _last_words(end: Exit) -> str:
    text = f"the engine worker {end.describe()}"
    return f"{text}; its last lines:\n  " + "\n  ".join(end.tail[-20:]) if end.tail else f"{text}; it printed nothing"
