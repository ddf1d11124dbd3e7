"""`generation_settings`: how an answer was made, under the names that requests use."""

from __future__ import annotations

from typing import Any

import msgspec

from puna.api.decode import first
from puna.api.fields import GenerationFields
from puna.api.probs import finite
from puna.types import Generation, Sampling, Trigger

_TRIGGER_TYPES = ("token", "word", "pattern", "pattern_full")


def sampling_object(s: Sampling) -> dict[str, Any]:
    """The numbers of the sampler chain."""
    return {
        "seed": s.seed,
        "temperature": s.temperature,
        "dynatemp_range": s.dynatemp_range,
        "dynatemp_exponent": s.dynatemp_exponent,
        "top_k": s.top_k,
        "top_p": s.top_p,
        "min_p": s.min_p,
        "top_n_sigma": s.top_n_sigma,
        "xtc_probability": s.xtc_probability,
        "xtc_threshold": s.xtc_threshold,
        "typical_p": s.typical_p,
        "repeat_last_n": s.repeat_last_n,
        "repeat_penalty": s.repeat_penalty,
        "presence_penalty": s.presence_penalty,
        "frequency_penalty": s.frequency_penalty,
        "dry_multiplier": s.dry_multiplier,
        "dry_base": s.dry_base,
        "dry_allowed_length": s.dry_allowed_length,
        "dry_penalty_last_n": s.dry_penalty_last_n,
        "mirostat": s.mirostat,
        "mirostat_tau": s.mirostat_tau,
        "mirostat_eta": s.mirostat_eta,
        "adaptive_target": s.adaptive_target,
        "adaptive_decay": s.adaptive_decay,
    }


def settings_object(generation: Generation, body: GenerationFields) -> dict[str, Any]:
    """All of a generation's settings, those that only shape the reply included."""
    s = generation.sampling
    n = first(body.n_cmpl, body.n, 1)
    return {
        **sampling_object(s),
        "dry_sequence_breakers": s.dry_sequence_breakers,
        "stop": generation.stop,
        "max_tokens": generation.max_tokens,
        "n_predict": generation.max_tokens,
        "min_tokens": s.min_tokens,
        "n_cmpl": n,
        "best_of": first(body.best_of, n),
        "n_keep": generation.n_keep,
        "n_discard": generation.n_discard,
        "context_shift": generation.context_shift,
        "n_indent": generation.n_indent,
        "t_max_predict_ms": generation.t_max_predict_ms,
        "cache_prompt": generation.cache_prompt,
        "n_cache_reuse": generation.n_cache_reuse,
        "deterministic": generation.deterministic,
        "ignore_eos": s.ignore_eos,
        "stream": body.stream is True,
        "logit_bias": [{"bias": finite(bias), "token": token} for token, bias in s.logit_bias],
        "n_probs": s.n_probs,
        "min_keep": s.min_keep,
        **_constraint_object(generation),
        "chat_format": "Content-only",
        "reasoning_format": "none",
        "reasoning_in_content": False,
        "generation_prompt": "",
        "samplers": s.samplers,
        "speculative.types": generation.speculation.type,
        "speculative.n_max": generation.speculation.n_max,
        "speculative.n_min": generation.speculation.n_min,
        "speculative.p_min": generation.speculation.p_min,
        "return_tokens": body.return_tokens is True,
        "return_progress": generation.want_progress,
        "timings_per_token": body.timings_per_token is True,
        "post_sampling_probs": s.post_sampling_probs,
        "backend_sampling": False,
        "lora": [{"id": id, "scale": scale} for id, scale in generation.lora],
    }


def _constraint_object(generation: Generation) -> dict[str, Any]:
    """What the output has to belong to, under the field that a client would ask for it with."""
    constraint = generation.constraint
    shown: dict[str, Any] = {
        "grammar": "",
        "grammar_lazy": False,
        "grammar_triggers": [],
        "preserved_tokens": generation.preserved_tokens,
    }
    if constraint is None:
        return shown
    shown["grammar_lazy"] = bool(constraint.triggers)
    shown["grammar_triggers"] = [_trigger_object(trigger) for trigger in constraint.triggers]
    if constraint.kind == "gbnf":
        return {**shown, "grammar": constraint.source}
    source = msgspec.json.decode(constraint.source) if constraint.kind in ("json_schema", "choice") else constraint.source
    return {**shown, constraint.kind: source}


def _trigger_object(trigger: Trigger) -> dict[str, Any]:
    """A trigger with llama.cpp's number for its kind."""
    shown = {"type": _TRIGGER_TYPES.index(trigger.kind), "value": trigger.value}
    return {**shown, "token": trigger.token} if trigger.kind == "token" else shown


def default_settings_object(generation: Generation, *, seed: int) -> dict[str, Any]:
    """What a request gets that names nothing, as `/props` shows it. A `seed` of -1 is a random one."""
    shown = settings_object(generation, GenerationFields(stream=True))
    for text in (
        "dry_sequence_breakers",
        "stop",
        "logit_bias",
        "grammar",
        "grammar_lazy",
        "grammar_triggers",
        "preserved_tokens",
    ):
        del shown[text]
    return {**shown, "seed": seed if seed >= 0 else 2**32 - 1}
