"""`/v1/models`: the listings of OpenAI, Anthropic and llama.cpp in one object."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from puna.service.service import Service
from puna.types import ModelFacts


def capabilities(facts: ModelFacts) -> list[str]:
    """What can be asked of the model, in words that clients look for."""
    able = {
        "completion": facts.has_decoder,
        "embedding": facts.embeds,
        "rerank": facts.ranks,
        "multimodal": facts.media is not None,
    }
    return [word for word, can in able.items() if can]


def architecture(facts: ModelFacts) -> dict[str, list[str]]:
    """What goes in and comes out."""
    media = facts.media
    seen = ["image"] if media is not None and media.vision else []
    heard = ["audio"] if media is not None and media.audio else []
    return {"input_modalities": ["text", *seen, *heard], "output_modalities": ["text"] if facts.has_decoder else []}


def models_object(service: Service, *, created: int) -> dict[str, Any]:
    """The one model that is served. `created` is in seconds since the epoch."""
    facts, name = service.facts, service.model
    return {
        "object": "list",
        "data": [
            {
                "id": name,
                "object": "model",
                "created": created,
                "owned_by": "puna",
                "meta": {
                    "vocab_type": facts.vocab_type,
                    "n_vocab": facts.n_vocab,
                    "n_ctx": facts.n_ctx,
                    "n_ctx_train": facts.n_ctx_train,
                    "n_embd": facts.n_embd,
                    "n_params": facts.n_params,
                    "size": facts.n_bytes,
                },
                "architecture": architecture(facts),
                "type": "model",
                "display_name": name,
                "created_at": datetime.fromtimestamp(created, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
        ],
        "has_more": False,
        "first_id": name,
        "last_id": name,
        "models": [
            {
                "name": name,
                "model": name,
                "modified_at": "",
                "size": "",
                "digest": "",
                "type": "model",
                "description": facts.description,
                "tags": [],
                "capabilities": capabilities(facts),
                "parameters": "",
                "details": {
                    "parent_model": "",
                    "format": "gguf",
                    "family": facts.architecture,
                    "families": [facts.architecture],
                    "parameter_size": "",
                    "quantization_level": "",
                },
            }
        ],
    }
