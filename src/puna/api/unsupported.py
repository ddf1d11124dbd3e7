"""Fields that are known but not served: they are refused by name wherever leaving them out would change the answer."""

from __future__ import annotations

from puna.api.fields import GenerationFields
from puna.errors import InvalidRequest, NotSupported


def refuse_unsupported(fields: GenerationFields) -> None:
    """Raise `NotSupported` for the first such field, `InvalidRequest` where its value makes no sense at all."""
    if fields.best_of is not None:
        n = fields.n_cmpl or fields.n or 1
        if fields.best_of < n:
            raise InvalidRequest("Field 'best_of': has to be at least 'n'", param="best_of")
        if fields.best_of > n:
            raise refusal("best_of", "choosing among more answers than are returned is not supported")
    if fields.lora:
        raise refusal("lora", "adapters for single requests are not supported")
    if fields.n_indent:
        raise InvalidRequest("Field 'n_indent': has to be 0 on this route", param="n_indent")
    if fields.t_max_predict_ms is not None and fields.t_max_predict_ms > 0:
        raise InvalidRequest("Field 't_max_predict_ms': has to be 0 on this route", param="t_max_predict_ms")
    if fields.deterministic:
        raise refusal("deterministic", "independence of load and cache is not supported")


def refusal(field: str, reason: str) -> NotSupported:
    """The error for a field that is known but not served."""
    return NotSupported(f"Field '{field}': {reason}", param=field)
