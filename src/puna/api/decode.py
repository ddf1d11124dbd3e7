"""The shared generation fields made into neutral values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from puna.api.bias import decode_bias
from puna.api.constraints import decode_constraint
from puna.api.fields import MAX_ANSWERS, GenerationFields, SamplingFields
from puna.api.logprobs import Logprobs
from puna.api.lora import decode_lora
from puna.api.samplers import decode_samplers
from puna.api.speculative import decode_speculation
from puna.api.triggers import decode_preserved, decode_triggers
from puna.api.unsupported import refuse_unsupported
from puna.errors import InvalidRequest
from puna.service.params import GenerationParams
from puna.service.service import Service
from puna.types import Sampling

MAX_STOPS = 256

COLDEST = 1e-4
"""Temperatures up to this are greedy: dividing by less could overflow, and nothing else would ever be chosen anyway."""

_PLAIN = (
    *("dynatemp_range", "dynatemp_exponent", "top_p", "min_p", "typical_p", "top_n_sigma", "xtc_probability", "xtc_threshold"),
    *("repeat_penalty", "presence_penalty", "frequency_penalty", "dry_multiplier", "dry_allowed_length", "dry_penalty_last_n"),
    *("mirostat_tau", "mirostat_eta", "adaptive_target", "adaptive_decay", "ignore_eos", "min_tokens"),
    "post_sampling_probs",
)
"""Fields of `Sampling` that have the same name and meaning in a request."""


class Decoded(msgspec.Struct, frozen=True, kw_only=True):
    """A request's generation fields."""

    params: GenerationParams
    logprobs: Logprobs
    constraint_field: str | None
    """The field that a complaint about the constraint should name."""


def decode_generation(
    fields: GenerationFields, service: Service, *, logprobs: Logprobs, bias_texts: bool, prompt_probs: bool = False
) -> Decoded:
    """Neutral values for the shared fields. Raises `InvalidRequest` or `NotSupported` that names the field.

    `bias_texts`: whether `logit_bias` may name tokens by text where `logit_bias_type` says nothing. `prompt_probs`: whether
    the prompt's own probabilities are wanted too.
    """
    refuse_unsupported(fields, service.facts)
    settings, tokenizer = service.settings, service.tokenizer
    constraint, constraint_field = decode_constraint(fields)
    preserved = decode_preserved(fields, tokenizer)
    triggers = decode_triggers(fields, tokenizer, preserved)
    if constraint is not None and triggers:
        constraint = msgspec.structs.replace(constraint, triggers=triggers)
    changes = _sampling_changes(fields)
    changes["n_probs"] = logprobs.n_probs
    if fields.logit_bias is not None:
        changes["logit_bias"] = decode_bias(fields.logit_bias, tokenizer, kind=fields.logit_bias_type, texts=bias_texts)
    if changes.get("min_keep", 0) > tokenizer.n_tokens:
        changes["min_keep"] = tokenizer.n_tokens
    id_slot = -1 if fields.id_slot is None else fields.id_slot
    n = _answers(fields)
    params = GenerationParams(
        sampling=msgspec.structs.replace(default_sampling(settings.sampling_defaults), **changes),
        seed=_seed(fields, settings.sampling_defaults),
        n=n,
        best_of=_best_of(fields, n),
        max_tokens=first(fields.n_predict, fields.max_completion_tokens, fields.max_tokens, settings.n_predict),
        stop=_stops(fields),
        constraint=constraint,
        preserved_tokens=preserved,
        lora=decode_lora(fields.lora, service.adapters, param="lora") if fields.lora else service.adapters.current,
        cache_prompt=first(fields.cache_prompt, settings.cache_prompt),
        n_cache_reuse=first(fields.n_cache_reuse, settings.cache_reuse),
        id_slot=id_slot % max(1, service.facts.n_slots) if id_slot >= 0 else -1,
        want_progress=fields.return_progress is True,
        prompt_probs=prompt_probs,
        context_shift=settings.context_shift,
        n_keep=first(fields.n_keep, settings.n_keep),
        n_discard=fields.n_discard or 0,
        speculation=decode_speculation(fields, settings, has_model=bool(service.facts.draft_model)),
        deterministic=fields.deterministic is True,
        n_indent=fields.n_indent or 0,
        t_max_predict_ms=max(0, fields.t_max_predict_ms or 0),
    )
    return Decoded(params=params, logprobs=logprobs, constraint_field=constraint_field)


def first(*values: Any) -> Any:
    """The first value that is not None."""
    return next((value for value in values if value is not None), None)


def default_sampling(defaults: Mapping[str, float]) -> Sampling:
    """What a request gets that names nothing; whole-numbered fields are whole numbers here too."""
    base = Sampling()
    return msgspec.structs.replace(
        base, **{name: type(getattr(base, name))(value) for name, value in defaults.items() if name != "seed"}
    )


def _sampling_changes(fields: SamplingFields) -> dict[str, Any]:
    changes = {name: value for name in _PLAIN if (value := getattr(fields, name)) is not None}
    if fields.temperature is not None:
        changes["temperature"] = 0.0 if fields.temperature <= COLDEST else fields.temperature
    if fields.top_k is not None:
        changes["top_k"] = max(0, fields.top_k)
    if fields.min_keep is not None:
        changes["min_keep"] = fields.min_keep
    if fields.dry_base is not None and fields.dry_base >= 1:
        changes["dry_base"] = fields.dry_base
    if fields.dry_sequence_breakers is not None:
        changes["dry_sequence_breakers"] = tuple(fields.dry_sequence_breakers)
    if (last_n := first(fields.repeat_last_n, fields.penalty_last_n)) is not None:
        changes["repeat_last_n"] = last_n
    if (mirostat := first(fields.mirostat, fields.mirostat_mode)) is not None:
        changes["mirostat"] = mirostat
    if fields.samplers is not None:
        changes["samplers"] = decode_samplers(fields.samplers)
    return changes


def _seed(fields: SamplingFields, defaults: Mapping[str, float]) -> int:
    return int(defaults.get("seed", -1)) if fields.seed is None else fields.seed


def _answers(fields: GenerationFields) -> int:
    name = "n_cmpl" if fields.n_cmpl is not None else "n"
    n = first(fields.n_cmpl, fields.n, 1)
    if not 1 <= n <= MAX_ANSWERS:
        raise InvalidRequest(f"Field '{name}': Value must be between 1 and {MAX_ANSWERS}", param=name)
    return int(n)


def _best_of(fields: GenerationFields, n: int) -> int:
    best_of = first(fields.best_of, n)
    if best_of < n:
        raise InvalidRequest("Field 'best_of': has to be at least 'n'", param="best_of")
    if best_of > n and fields.stream:
        raise InvalidRequest(
            "Field 'best_of': the best answers are known at the end only, so 'stream' has to be false", param="best_of"
        )
    return int(best_of)


def _stops(fields: GenerationFields) -> tuple[str, ...]:
    name = "stop" if fields.stop is not None else "stop_sequences"
    value = first(fields.stop, fields.stop_sequences)
    if value is None:
        return ()
    stops = [value] if isinstance(value, str) else value
    if not isinstance(stops, list) or not all(isinstance(stop, str) for stop in stops):
        raise InvalidRequest(f"Field '{name}': a text or a list of texts is expected", param=name)
    if len(stops) > MAX_STOPS:
        raise InvalidRequest(f"Field '{name}': more than {MAX_STOPS} stop strings", param=name)
    return tuple(stop for stop in dict.fromkeys(stops) if stop)
