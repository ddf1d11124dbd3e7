"""What is said of several models: `/models`, and what loads and unloads them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timezone
from typing import Any

import msgspec

from puna.api.openai.models import architecture
from puna.models.catalogue import Entry
from puna.models.pool import News, Pool
from puna.server.served import ServedModel

Models = Pool[ServedModel]

PING_AFTER = 10.0


def models_object(models: Models, *, created: int) -> dict[str, Any]:
    """All models, in the shapes of OpenAI's, Anthropic's and llama.cpp's listings at once."""
    data = [model_object(models, entry, created=created) for entry in models.catalogue.entries]
    names = [entry.name for entry in models.catalogue.entries]
    return {
        "object": "list",
        "data": data,
        "has_more": False,
        "first_id": names[0] if names else None,
        "last_id": names[-1] if names else None,
    }


def model_object(models: Models, entry: Entry, *, created: int) -> dict[str, Any]:
    """One model, loaded or not."""
    news = models.state(entry)
    value: dict[str, Any] = {
        "id": entry.name,
        "object": "model",
        "created": created,
        "owned_by": "puna",
        "aliases": entry.aliases,
        "jobs": sorted(entry.jobs),
        "path": entry.settings.engine.model,
        "in_cache": True,
        "status": _status(news),
        "type": "model",
        "display_name": entry.name,
        "created_at": datetime.fromtimestamp(created, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "memory": entry.needed,
    }
    served = models.loaded(entry)
    if served is not None and (facts := served.engine.facts) is not None:
        value["architecture"] = architecture(facts)
        value["meta"] = {
            "vocab_type": facts.vocab_type,
            "n_vocab": facts.n_vocab,
            "n_ctx": facts.n_ctx,
            "n_ctx_train": facts.n_ctx_train,
            "n_embd": facts.n_embd,
            "n_params": facts.n_params,
            "size": facts.n_bytes,
        }
    return value


def _status(news: News) -> dict[str, Any]:
    status: dict[str, Any] = {"value": news.state}
    if news.state == "loading":
        status["progress"] = news.progress
    if news.state == "failed":
        status |= {"failed": True, "reason": news.failure}
    return status


async def news_frames(models: Models) -> AsyncIterator[bytes]:
    """Server-sent events: what each model is doing, then all that changes."""
    async with models.news() as queue:
        yield b"".join(_frame(models.state(entry)) for entry in models.catalogue.entries)
        while True:
            try:
                yield _frame(await asyncio.wait_for(queue.get(), PING_AFTER))
            except asyncio.TimeoutError:
                yield b": ping\n\n"


def _frame(news: News) -> bytes:
    value = {"model": news.name, "status": _status(news)}
    return b"data: " + msgspec.json.encode(value) + b"\n\n"
