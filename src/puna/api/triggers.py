"""`grammar_lazy`, `grammar_triggers` and `preserved_tokens`, in llama.cpp's forms."""

from __future__ import annotations

from typing import Any

from puna.api.fields import ConstraintFields
from puna.errors import InvalidRequest
from puna.service.ports import Tokenizer
from puna.service.prompts import token_of
from puna.types import Trigger

TRIGGER_KINDS = ("token", "word", "pattern", "pattern_full")
"""Kinds of triggers at llama.cpp's numbers for them."""

MAX_TRIGGERS = 64
MAX_LENGTH = 1024
"""Most characters of a trigger's value."""

MAX_PRESERVED = 1024


def decode_preserved(fields: ConstraintFields, tokenizer: Tokenizer) -> tuple[int, ...]:
    """Ids of the tokens to be shown as text; texts that are not one token are left out."""
    texts = fields.preserved_tokens or []
    if len(texts) > MAX_PRESERVED:
        raise InvalidRequest(f"Field 'preserved_tokens': more than {MAX_PRESERVED} tokens", param="preserved_tokens")
    ids = (token_of(tokenizer, text) for text in texts)
    return tuple(dict.fromkeys(id for id in ids if id is not None))


def decode_triggers(fields: ConstraintFields, tokenizer: Tokenizer, preserved: tuple[int, ...]) -> tuple[Trigger, ...]:
    """The triggers of a lazy grammar; none where it is not lazy. Raises `InvalidRequest` that names the one at fault."""
    if not fields.grammar_lazy:
        return ()
    items = fields.grammar_triggers or []
    if not items:
        raise InvalidRequest("Field 'grammar_triggers': a lazy grammar needs at least one", param="grammar_triggers")
    if len(items) > MAX_TRIGGERS:
        raise InvalidRequest(f"Field 'grammar_triggers': more than {MAX_TRIGGERS} triggers", param="grammar_triggers")
    return tuple(_trigger(item, f"grammar_triggers.{index}", tokenizer, preserved) for index, item in enumerate(items))


def _trigger(item: Any, at: str, tokenizer: Tokenizer, preserved: tuple[int, ...]) -> Trigger:
    if not isinstance(item, dict):
        raise InvalidRequest(f"Field '{at}': an object is expected", param=at)
    kind = item.get("type")
    if isinstance(kind, int) and not isinstance(kind, bool) and 0 <= kind < len(TRIGGER_KINDS):
        kind = TRIGGER_KINDS[kind]
    value = item.get("value")
    if not isinstance(value, str) or len(value) > MAX_LENGTH:
        raise InvalidRequest(f"Field '{at}.value': a text of at most {MAX_LENGTH} characters is expected", param=f"{at}.value")
    if kind == "token":
        return Trigger("token", value, _token(item.get("token"), at, tokenizer))
    if kind == "word":
        return _word(value, at, tokenizer, preserved)
    if kind in ("pattern", "pattern_full"):
        return Trigger(kind, value)
    raise InvalidRequest(
        f"Field '{at}.type': 0 (token), 1 (word), 2 (pattern) or 3 (pattern_full) is expected", param=f"{at}.type"
    )


def _token(id: Any, at: str, tokenizer: Tokenizer) -> int:
    if isinstance(id, bool) or not isinstance(id, int) or not 0 <= id < tokenizer.n_tokens:
        raise InvalidRequest(f"Field '{at}.token': an id inside the vocabulary is expected", param=f"{at}.token")
    return id


def _word(value: str, at: str, tokenizer: Tokenizer, preserved: tuple[int, ...]) -> Trigger:
    """A word that is one token is looked for as that token."""
    if not value:
        raise InvalidRequest(f"Field '{at}.value': the word is empty", param=f"{at}.value")
    id = token_of(tokenizer, value)
    if id is None:
        return Trigger("word", value)
    if id not in preserved:
        raise InvalidRequest(
            f"Field '{at}': {value[:100]!r} is one token, so it has to be among 'preserved_tokens' too", param=at
        )
    return Trigger("token", value, id)
