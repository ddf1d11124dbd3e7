"""Fields of a request that nothing reads: left out, so that newer clients keep working, and said in the log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from pydantic import AliasChoices, BaseModel

from puna.log import logger

MOST = 1000
"""Fields that are remembered as said; nothing is said about more."""

LONGEST = 60
"""Characters of a name from which it is nobody's misspelling."""

ALIKE = 0.8
"""How much of a name has to be right to be taken for a misspelling, as `difflib` counts."""

_said: set[tuple[str, str]] = set()


def note_strays(model: type[BaseModel], body: Mapping[str, Any]) -> None:
    """Log those keys of a body that its model does not know, each once. One that looks misspelt is a warning."""
    known = _names(model)
    for name in body.keys() - known:
        if len(_said) >= MOST:
            return
        if len(name) > LONGEST or (model.__name__, name) in _said:
            continue
        _said.add((model.__name__, name))
        if meant := get_close_matches(name, known - body.keys(), n=1, cutoff=ALIKE):
            logger.warning("the field %r of a request is not known and was left out; was %r meant?", name, meant[0])
        else:
            logger.debug("the field %r of a request is not known and was left out", name)


@lru_cache(maxsize=64)
def _names(model: type[BaseModel]) -> frozenset[str]:
    """Under what names a model's fields come."""
    return frozenset(name for key, field in model.model_fields.items() for name in (key, *_aliases(field.validation_alias)))


def _aliases(alias: Any) -> Iterable[str]:
    if isinstance(alias, AliasChoices):
        return [choice for choice in alias.choices if isinstance(choice, str)]
    return [alias] if isinstance(alias, str) else []
