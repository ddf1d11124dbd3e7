"""Ids for calls that have none of their own."""

from __future__ import annotations

import secrets
import string

_ALPHABET = (string.ascii_letters + string.digits).encode()
_LETTERS = bytes(_ALPHABET[byte % len(_ALPHABET)] for byte in range(256))
"""A letter or digit for every byte; that some are a little more frequent does not matter."""


def new_call_id() -> str:
    """An id such as OpenAI makes them."""
    return "call_" + _random(24)


def new_short_id() -> str:
    """Nine letters and digits, which is all that Mistral's templates take."""
    return _random(9)


def _random(n: int) -> str:
    return secrets.token_bytes(n).translate(_LETTERS).decode()
