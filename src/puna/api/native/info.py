"""`/props` and `/slots`."""

from __future__ import annotations

from typing import Any

import msgspec

from puna.api.decode import default_sampling
from puna.api.settings import default_settings_object
from puna.api.speculative import default_speculation
from puna.errors import NotSupported
from puna.service.media import MARKER
from puna.service.ports import Tokenizer
from puna.service.service import BUILD, Service
from puna.service.templates import TOOL_USE
from puna.types import Generation, SlotState, SlotTask


def props_object(service: Service) -> dict[str, Any]:
    """What a client may want to know of the model and the server."""
    facts, settings, tokenizer = service.facts, service.settings, service.tokenizer
    template, capabilities = _chat(service)
    generation = Generation(
        prompt=(),
        sampling=default_sampling(settings.sampling_defaults),
        max_tokens=settings.n_predict,
        lora=service.adapters.current,
        cache_prompt=settings.cache_prompt,
        n_cache_reuse=settings.cache_reuse,
        speculation=default_speculation(settings),
        context_shift=settings.context_shift,
        n_keep=settings.n_keep,
    )
    seed = int(settings.sampling_defaults.get("seed", -1))
    return {
        "default_generation_settings": {
            "params": default_settings_object(generation, seed=seed),
            "n_ctx": facts.n_ctx,
        },
        "total_slots": facts.n_slots,
        "model_alias": service.model,
        "model_path": facts.path,
        "embeddings": facts.embeds,
        "reranking": facts.ranks,
        "pooling": facts.pooling,
        "n_embd": facts.n_embd_out,
        "n_ctx_input": facts.n_ctx_pooled if facts.pooling is not None else 0,
        "modalities": {
            "vision": facts.media is not None and facts.media.vision,
            "video": False,
            "audio": facts.media is not None and facts.media.audio,
        },
        "media_marker": MARKER,
        "endpoint_slots": settings.slots_endpoint,
        "endpoint_props": False,
        "endpoint_metrics": settings.metrics_endpoint,
        "chat_template": template,
        "chat_template_caps": capabilities,
        **_variants(service),
        "bos_token": tokenizer.text(tokenizer.bos) if tokenizer.bos >= 0 else "",
        "eos_token": tokenizer.text(tokenizer.eos) if tokenizer.eos >= 0 else "",
        "build_info": BUILD,
        "engine": facts.engine,
        "draft_model": facts.draft_model,
        "calibration": None if facts.tuning is None else msgspec.to_builtins(facts.tuning),
        "is_sleeping": False,
    }


def _chat(service: Service) -> tuple[str, dict[str, bool]]:
    """The template and what it can do; nothing for one that cannot be used."""
    try:
        return service.chat.template.source, service.chat.capabilities
    except NotSupported:
        return service.settings.chat_template or service.facts.chat_template or "", {}


def _variants(service: Service) -> dict[str, str]:
    """The model's template for conversations with tools, if it has one of its own."""
    try:
        found = service.templates.variants.get(TOOL_USE)
    except NotSupported:
        return {}
    return {} if found is None else {"chat_template_tool_use": found}


def _task(slot: SlotState, task: SlotTask | None, tokenizer: Tokenizer, *, texts: bool) -> dict[str, Any]:
    """A slot's request: how it was to be answered, how far that is, and with `texts` what it is about."""
    if task is None:
        return {}
    generation, produced = task.generation, task.produced
    wordless = msgspec.structs.replace(generation, constraint=None, stop=(), preserved_tokens=(), thinking=None)
    limit = generation.max_tokens
    value: dict[str, Any] = {
        "params": default_settings_object(wordless, seed=generation.sampling.seed),
        "next_token": [
            {
                "has_next_token": slot.busy,
                "has_new_line": any(b"\n" in tokenizer.piece(token) for token in produced),
                "n_remain": max(0, limit - len(produced)) if limit >= 0 else -1,
                "n_decoded": len(produced),
            }
        ],
    }
    if texts:
        value["prompt"] = tokenizer.detokenize(generation.prompt)
        value["generated"] = tokenizer.detokenize(produced)
    return value


def slots_list(service: Service) -> list[dict[str, Any]]:
    """Every slot and what it is doing, or did last. Text of requests only if the server was told to show it."""
    n_ctx, tokenizer = service.facts.n_ctx, service.tokenizer
    slots: list[dict[str, Any]] = []
    speculative = default_speculation(service.settings).on and service.facts.can_draft
    for slot in service.engine.slots:
        value: dict[str, Any] = {"id": slot.id, "n_ctx": n_ctx, "speculative": speculative, "is_processing": slot.busy}
        if slot.request >= 0:
            value["id_task"] = slot.request
            value["n_prompt_tokens"] = slot.n_prompt
            value["n_prompt_tokens_processed"] = max(0, slot.n_prompt_done - slot.n_cached)
            value["n_prompt_tokens_cache"] = slot.n_cached
            value |= _task(slot, service.engine.slot_task(slot.id), tokenizer, texts=service.settings.slots_prompts)
        slots.append(value)
    return slots
