"""Work on files, beside the engine's thread."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class FileThread:
    """Does one job after another on a thread of its own, urgent ones first."""

    def __init__(self) -> None:
        self._arrived = threading.Event()
        self._count = itertools.count()
        self._jobs: queue.PriorityQueue[tuple[int, int, Callable[[], None]]] = queue.PriorityQueue()
        self._thread = threading.Thread(target=self._work, name="files", daemon=True)
        self._started = False

    def do(self, work: Callable[[], T], *, urgent: bool = False) -> Future[T]:
        """Have `work` done; the future holds what it returns or raises."""
        future: Future[T] = Future()

        def job() -> None:
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 - it is whoever waits that has to know
                future.set_exception(error)
            else:
                future.set_result(result)

        if not self._started:
            self._started = True
            self._thread.start()
        self._jobs.put((0 if urgent else 1, next(self._count), job))
        return future

    def wait(self, seconds: float) -> None:
        """Until a job has ended since this was last called, or the time is over."""
        self._arrived.wait(seconds)
        self._arrived.clear()

    def _work(self) -> None:
        while True:
            job: Any = self._jobs.get()
            job[2]()
            self._arrived.set()
