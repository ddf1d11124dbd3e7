"""From the open socket to the last answer: load, serve, drain, end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from typing import Protocol

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from puna.api.responses.store import ResponseStore
from puna.config import ServerSettings
from puna.errors import NotSupported, StartupError
from puna.log import logger
from puna.server.app import create_app
from puna.server.connection import Connection
from puna.server.replay import Recordings
from puna.service.grammars import ProcessPreparer
from puna.service.ports import Engine
from puna.service.service import Service
from puna.types import ModelFacts

FLUSH_TIMEOUT = 5
"""Seconds that connections get to send what is left once all answers have ended."""

KEEP_ALIVE = 75
"""Seconds that an idle connection stays open: longer than clients keep theirs, so that none is reused while it closes."""

QUIET_LOADING = 2.0
"""Seconds of loading before anything is said about it."""


class ServedEngine(Engine, Protocol):
    """An engine with the life of its worker."""

    async def start(self, on_loading: Callable[[float], None] | None = None) -> None:
        """Load the model. Raises `StartupError`."""
        ...

    async def drain(self, timeout: float) -> int:
        """Admit nothing more, wait for what runs, return how many answers did not end in time."""
        ...

    async def stop(self) -> None:
        """End the answers that still run, and the worker."""
        ...


class HttpServer(uvicorn.Server):
    """uvicorn without hands on the signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to `Lifecycle`."""
        yield


class Lifecycle:
    """One server's life. The socket answers from the start: with 503 until the model is there."""

    def __init__(
        self,
        engine: ServedEngine,
        settings: ServerSettings,
        listening: socket.socket,
        models: Callable[[ASGIApp], ASGIApp] | None = None,
        kept: ResponseStore | None = None,
    ) -> None:
        """`listening` is bound already, so that a taken port is known before a model is loaded. `models` is a middleware that
        answers what is about one of several models, and `kept` the replies that these share."""
        self._engine = engine
        self._settings = settings
        self._socket = listening
        app: FastAPI = create_app(engine, settings, ProcessPreparer(), models=models, kept=kept)
        self._service: Service = app.state.service
        self._recordings: Recordings = app.state.recordings
        self._http = HttpServer(http_config(app))
        self._stop = asyncio.Event()

    @property
    def url(self) -> str:
        """Where a browser on this machine finds the server."""
        host, port = self._socket.getsockname()[:2]
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    async def run(self) -> None:
        """Serve until told to stop. Raises `StartupError` if the model cannot be loaded."""
        stopping = asyncio.create_task(self._stop.wait())
        serving = asyncio.create_task(self._http.serve(sockets=[self._socket]))
        loading = asyncio.create_task(self._load())
        try:
            await asyncio.wait({stopping, serving, loading}, return_when=asyncio.FIRST_COMPLETED)
            if loading.done():
                loading.result()
                await asyncio.wait({stopping, serving}, return_when=asyncio.FIRST_COMPLETED)
            await self._drain()
        finally:
            for task in (loading, stopping):
                task.cancel()
            await asyncio.gather(loading, stopping, return_exceptions=True)
            await self._engine.stop()
            self._recordings.stop_all()
            await self._service.aclose()
            self._http.should_exit = True
            await serving

    def stop(self) -> None:
        """Begin to shut down; called again, end the process at once."""
        if self._stop.is_set():
            logger.warning("stopped at once")
            os._exit(1)
        self._stop.set()

    def handle_signals(self) -> None:
        """Let SIGINT and SIGTERM call `stop`."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.stop)

    async def _load(self) -> None:
        logger.info("loading the model; %s answers already", self.url)
        await self._engine.start(LoadingReport())
        if self._engine.facts is None:  # there are several models, each of which has said what it is
            logger.info("ready at %s", self.url)
            return
        facts = self._service.facts
        if facts.has_decoder:
            await self._prepare_chat()
        logger.info("%s: %s, %s", self._service.model, facts.description, abilities(facts))
        if facts.tuning is not None:
            logger.info("%s", facts.tuning.report())
        logger.info("ready at %s", self.url)
        await self._service.warm()

    async def _prepare_chat(self) -> None:
        """Read the template now: a request would have to wait for it, and somebody chose it on the command line."""
        try:
            await asyncio.to_thread(lambda: self._service.chat.capabilities)
        except NotSupported as error:
            if self._settings.chat_template or self._settings.chat_template_kwargs:
                raise StartupError(error.message) from error
            logger.warning("%s", error.message)

    async def _drain(self) -> None:
        self._service.drain()
        if n := self._engine.in_flight:
            logger.info("shutting down; %d answers have %g s to finish", n, self._settings.drain_timeout)
            await self._engine.drain(self._settings.drain_timeout)
        else:
            logger.info("shutting down")


def abilities(facts: ModelFacts) -> str:
    """What a model is served for, in words."""
    words: list[str] = []
    if facts.has_decoder:
        words.append(f"{facts.n_slots} slots of {facts.n_ctx} tokens")
    if facts.embeds:
        words.append(f"embeds inputs of up to {facts.n_ctx_pooled} tokens ({facts.pooling} pooling)")
    if facts.ranks:
        words.append(f"ranks pairs of up to {facts.n_ctx_pooled} tokens")
    return "; ".join(words) or "serves nothing: " + facts.why_no_vectors


class LoadingReport:
    """Says every now and then how far a slow load has come."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next = clock() + QUIET_LOADING

    def __call__(self, share: float) -> None:
        now = self._clock()
        if now >= self._next and share < 1:
            self._next = now + QUIET_LOADING
            logger.info("loading: %d %%", int(share * 100))


def http_config(app: FastAPI) -> uvicorn.Config:
    """uvicorn's settings: nothing of its own in the log, nothing trusted that a client says about a proxy."""
    return uvicorn.Config(
        app,
        http=Connection,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=FLUSH_TIMEOUT,
    )
