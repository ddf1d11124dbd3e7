"""One model of several with all that serves it: engine, app, grammar checks."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

from starlette.types import ASGIApp

from puna.api.responses.store import ResponseStore
from puna.client.handle import EngineClient
from puna.client.tokenizer import Tokenizer, load_tokenizer
from puna.errors import NotSupported, StartupError
from puna.log import logger
from puna.models.catalogue import Entry
from puna.server.app import create_inner_app
from puna.server.lifecycle import abilities
from puna.service.grammars import ProcessPreparer
from puna.service.service import Service

COLLECT_AFTER = 1.0
"""Seconds after which what is left of an unloaded model is cleared away."""


class ServedModel:
    """A model that is loaded once; after `unload` it is of no use any more."""

    def __init__(self, entry: Entry, kept: ResponseStore) -> None:
        """`kept` is shared with other models: a reply outlives the model that made it."""
        settings = entry.settings
        self.engine: EngineClient[Tokenizer] = EngineClient(settings.engine, load_tokenizer, max_queue=settings.server.max_queue)
        app = create_inner_app(self.engine, settings.server, ProcessPreparer(), kept)
        self.app: ASGIApp = app
        self.service: Service = app.state.service
        self._template_is_chosen = bool(settings.server.chat_template)

    async def load(self, on_loading: Callable[[float], None]) -> None:
        """Load the model and what a first request would have to wait for. Raises `StartupError`."""
        await self.engine.start(on_loading)
        if self.service.facts.has_decoder:
            try:
                await asyncio.to_thread(lambda: self.service.chat.capabilities)
            except NotSupported as error:
                if self._template_is_chosen:
                    raise StartupError(error.message) from error
                logger.warning("%s", error.message)
        facts = self.service.facts
        logger.info("%s: %s, %s", self.service.model, facts.description, abilities(facts))

    async def unload(self, grace: float) -> None:
        """End the worker; answers that still run have `grace` seconds."""
        self.service.drain()
        if grace > 0 and self.engine.in_flight:
            await self.engine.drain(grace)
        await self.engine.stop()
        await self.service.aclose()
        # all this refers to each other, and a vocabulary takes tens of megabytes
        asyncio.get_running_loop().call_later(COLLECT_AFTER, gc.collect)
