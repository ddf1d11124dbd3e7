"""`generation_settings`: how an answer was made, under the names that requests use."""

from __future__ import annotations

from typing import Any

from puna.api.probs import finite
from puna.types import Generation, Sampling


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


def settings_object(generation: Generation, *, stream: bool, timings_per_token: bool) -> dict[str, Any]:
    """All of a generation's settings."""
    s = generation.sampling
    constraint = generation.constraint
    return {
        **sampling_object(s),
        "dry_sequence_breakers": s.dry_sequence_breakers,
        "stop": generation.stop,
        "max_tokens": generation.max_tokens,
        "n_predict": generation.max_tokens,
        "min_tokens": s.min_tokens,
        "n_keep": 0,
        "n_discard": 0,
        "ignore_eos": s.ignore_eos,
        "stream": stream,
        "logit_bias": [{"bias": finite(bias), "token": token} for token, bias in s.logit_bias],
        "n_probs": s.n_probs,
        "min_keep": s.min_keep,
        "grammar": constraint.source if constraint is not None and constraint.kind == "gbnf" else "",
        "grammar_lazy": False,
        "grammar_triggers": [],
        "preserved_tokens": [],
        "chat_format": "Content-only",
        "reasoning_format": "none",
        "reasoning_in_content": False,
        "generation_prompt": "",
        "samplers": s.samplers,
        "speculative.types": "none",
        "timings_per_token": timings_per_token,
        "post_sampling_probs": s.post_sampling_probs,
        "backend_sampling": False,
        "lora": [],
    }


def default_settings_object(sampling: Sampling, *, seed: int, n_predict: int) -> dict[str, Any]:
    """What a request gets that names nothing, as `/props` shows it."""
    shown = settings_object(Generation(prompt=(), sampling=sampling, max_tokens=n_predict), stream=True, timings_per_token=False)
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
