"""The real HTTP server around a scripted engine, in a thread, and what it has logged."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import logging
import os
import re
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from puna.config import ServerSettings
from puna.log import logger
from puna.server.app import create_app
from puna.server.lifecycle import HttpServer, http_config
from puna.server.sockets import listen
from tests.fakes import FakeEngine

ALL = "PUNA_TEST_ALL_CLIENTS" in os.environ
"""Whether a client that is not installed is a failure."""

LINE = re.compile(r"(?P<what>\w+ \S+ (?:\d+|no reply)(?:, client gone)?) \d+ ms")


def need(module: str) -> Any:
    """A client's module; the test is skipped where it is not installed."""
    if importlib.util.find_spec(module.partition(".")[0]) is None:
        if ALL:
            pytest.fail(f"{module} is not installed")
        pytest.skip(f"{module} is not installed; `make test-clients` does it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what clients say about what they import is no matter of this project
        return importlib.import_module(module)


class Live:
    """A server on a free port. `turns` holds what happens in a block against the server's own log of requests."""

    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine
        self.lines: list[str] = []
        self.open = 0
        """Requests that are not over."""
        self._listening = listen("127.0.0.1", 0)
        self.port = self._listening.getsockname()[1]
        self.root = f"http://127.0.0.1:{self.port}"
        self.url = self.root + "/v1"
        app = create_app(engine, ServerSettings(request_log=True, sse_ping_interval=1))
        app.add_middleware(_Counted, live=self)
        self._server = HttpServer(http_config(app))
        self._thread = threading.Thread(target=self._run, name="server")

    def _run(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._listening]))

    def __enter__(self) -> Live:
        self._handler = _Lines(self.lines)
        logger.addHandler(self._handler)
        logger.setLevel(logging.INFO)
        self._thread.start()
        wait_until(lambda: self._server.started, "the server does not start")
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        logger.removeHandler(self._handler)
        assert not self._thread.is_alive()

    @contextlib.contextmanager
    def turns(self, *expected: str, to_end: bool = True) -> Iterator[None]:
        """In the block exactly these requests come, each as `METHOD path status`, in this order: nothing is tried again.

        In the log the id of a kept response is `ID`. Without `to_end` it does not count whether a client stayed to the end,
        which after an event that tells of an error is a race.
        """
        begin = len(self.lines)
        yield
        wait_until(lambda: not self.open and len(self.lines) - begin >= len(expected), "requests stay open", self.lines[begin:])
        found = self.lines[begin:]
        assert (found if to_end else [line.removesuffix(", client gone") for line in found]) == list(expected)


class _Counted:
    """Middleware around all others, so that a line is in the log before its request is over."""

    def __init__(self, app: ASGIApp, live: Live) -> None:
        self._app = app
        self._live = live

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._live.open += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._live.open -= 1


class _Lines(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._found = lines

    def emit(self, record: logging.LogRecord) -> None:
        found = LINE.fullmatch(record.getMessage())
        if found:
            self._found.append(re.sub("resp_[0-9a-f]+", "ID", found["what"]))


def wait_until(condition: Any, complaint: str, more: Any = "") -> None:
    """Poll until it holds."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, f"{complaint} {more}"
        time.sleep(0.005)
