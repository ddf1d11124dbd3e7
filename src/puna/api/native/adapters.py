"""`/lora-adapters`."""

from __future__ import annotations

from typing import Any

from puna.service.service import Service


def adapters_list(service: Service) -> list[dict[str, Any]]:
    """Every loaded adapter with its present scale."""
    tokenizer = service.tokenizer
    adapters: list[dict[str, Any]] = []
    for id, (adapter, scale) in enumerate(zip(service.facts.adapters, service.adapters.all, strict=True)):
        value: dict[str, Any] = {
            "id": id,
            "path": adapter.path,
            "scale": scale,
            "task_name": adapter.task_name,
            "prompt_prefix": adapter.prompt_prefix,
        }
        if adapter.invocation:
            value["alora_invocation_string"] = tokenizer.detokenize(adapter.invocation)
            value["alora_invocation_tokens"] = adapter.invocation
        adapters.append(value)
    return adapters
