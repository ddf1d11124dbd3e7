"""Fields that are known but not served: they are refused by name wherever leaving them out would change the answer."""

from __future__ import annotations

from puna.api.fields import GenerationFields
from puna.errors import NotSupported
from puna.types import ModelFacts


def refuse_unsupported(fields: GenerationFields, facts: ModelFacts) -> None:
    """Raise `NotSupported` for the first such field."""
    if not facts.has_decoder:
        raise NotSupported(f"this model ({facts.description}) does not generate text")
    if fields.deterministic and facts.layout == "unified":
        raise refusal("deterministic", "needs the split layout; start the server with --layout split")


def refusal(field: str, reason: str) -> NotSupported:
    """The error for a field that is known but not served."""
    return NotSupported(f"Field '{field}': {reason}", param=field)
