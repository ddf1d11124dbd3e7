"""The whole server process, as the command line starts it."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Coroutine
from functools import partial
from typing import Any

from puna import log
from puna.client.handle import EngineClient
from puna.client.tokenizer import load_tokenizer
from puna.config import Settings
from puna.log import logger
from puna.models.catalogue import Catalogue
from puna.server.cors import is_loopback_name
from puna.server.dispatch import Dispatcher
from puna.server.fleet import Fleet, read_models
from puna.server.lifecycle import Lifecycle
from puna.server.sockets import listen
from puna.settings import Loaded


def run(loaded: Loaded) -> int:
    """Serve until a signal comes; return the exit code. Raises `StartupError` for what the person starting it must mend."""
    settings = loaded.settings
    server = settings.server
    catalogue = read_models(loaded) if settings.models.several else None
    log.configure(server.log_level, secrets=server.api_keys)
    web_log = logging.getLogger("uvicorn")
    web_log.handlers[:] = logger.handlers
    web_log.setLevel(logging.WARNING)
    web_log.propagate = False
    if not server.api_keys and not is_loopback_name(server.host):
        logger.warning("listening on %s without an API key: anybody who reaches this port can use the model", server.host)
    run_async(_serve(settings, catalogue, listen(server.host, server.port)))
    return 0


async def _serve(settings: Settings, catalogue: Catalogue | None, listening: socket.socket) -> None:
    server = settings.server
    if catalogue is None:
        engine = EngineClient(settings.engine, load_tokenizer, max_queue=server.max_queue)
        lifecycle = Lifecycle(engine, server, listening)
    else:
        fleet = Fleet(catalogue, settings)
        dispatcher = partial(Dispatcher, models=fleet.pool, max_body=server.max_body, autoload=settings.models.autoload)
        lifecycle = Lifecycle(fleet, server, listening, models=dispatcher, kept=fleet.kept)
    lifecycle.handle_signals()
    await lifecycle.run()


def run_async(main: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
    else:
        uvloop.run(main)
