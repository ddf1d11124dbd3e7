"""Drafts as requests ask for them: `speculative.n_max` and the like, flat as llama.cpp has them, or in an object."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from puna.api.numbers import Share, Whole
from puna.config import ServerSettings
from puna.errors import InvalidRequest
from puna.speculation import TYPES, Speculation, parse_type

MOST = 1024

Length = Annotated[Whole, Field(ge=0, le=MOST)]


class SpeculativeObject(BaseModel):
    """The fields without their prefix."""

    model_config = ConfigDict(strict=True, extra="ignore")

    type: str | None = None
    types: str | None = Field(default=None, description="the same as `type`")
    n_max: Length | None = None
    n_min: Length | None = None
    p_min: Share | None = None


class SpeculativeFields(BaseModel):
    """What a request may say of drafts."""

    speculative: SpeculativeObject | None = None
    speculative_type: str | None = Field(default=None, alias="speculative.type", description="one of " + ", ".join(TYPES))
    speculative_types: str | None = Field(default=None, alias="speculative.types", description="the same as `speculative.type`")
    speculative_n_max: Length | None = Field(
        default=None, alias="speculative.n_max", description="most tokens of a draft; 0 is off"
    )
    speculative_n_min: Length | None = Field(default=None, alias="speculative.n_min", description="shorter drafts are not used")
    speculative_p_min: Share | None = Field(
        default=None, alias="speculative.p_min", description="least chance that a drafted token is right"
    )


def default_speculation(settings: ServerSettings) -> Speculation:
    """What a request gets that does not say."""
    return Speculation(type=settings.spec_type, n_max=settings.draft_max, n_min=settings.draft_min, p_min=settings.draft_p_min)


def decode_speculation(fields: SpeculativeFields, settings: ServerSettings, *, has_model: bool) -> Speculation:
    """What a request wants of drafts, on a server with or without a draft model. Raises `InvalidRequest` that names the field."""
    default = default_speculation(settings)
    changes: dict[str, Any] = {}
    for name in ("n_max", "n_min", "p_min"):
        flat = getattr(fields, f"speculative_{name}")
        value = flat if flat is not None else getattr(fields.speculative, name, None)
        changes[name] = getattr(default, name) if value is None else value
    changes["n_min"] = min(changes["n_min"], changes["n_max"])
    where, kind = _type(fields)
    changes["type"] = default.type
    if kind is not None:
        try:
            changes["type"] = parse_type(kind)
        except ValueError as error:
            raise InvalidRequest(f"Field '{where}': {error}", param=where) from error
        if changes["type"] == "draft" and not has_model:
            raise InvalidRequest(f"Field '{where}': this server has no draft model", param=where)
    return Speculation(**changes)


def _type(fields: SpeculativeFields) -> tuple[str, str | None]:
    nested = fields.speculative or SpeculativeObject()
    named = {
        "speculative.type": fields.speculative_type if fields.speculative_type is not None else nested.type,
        "speculative.types": fields.speculative_types if fields.speculative_types is not None else nested.types,
    }
    return next(((where, kind) for where, kind in named.items() if kind is not None), ("speculative.type", None))
