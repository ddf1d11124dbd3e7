"""Ids for calls that have none of their own."""

from __future__ import annotations

import secrets
import string

_ALPHABET = string.ascii_letters + string.digits


def new_call_id() -> str:
    """An id such as OpenAI makes them."""
    return "call_" + _random(24)


def new_short_id() -> str:
    """Nine letters and digits, which is all that Mistral's templates take."""
    return _random(9)


def _random(n: int) -> str:
    number = secrets.randbelow(len(_ALPHABET) ** n)
    letters: list[str] = []
    for _ in range(n):
        number, place = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[place])
    return "".join(letters)
