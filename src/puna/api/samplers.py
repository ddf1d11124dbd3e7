"""`samplers`: the chain as a list of names or as a string of one character each."""

from __future__ import annotations

from typing import Any

from puna.errors import InvalidRequest

BY_CHARACTER = {
    "d": "dry",
    "k": "top_k",
    "y": "typ_p",
    "p": "top_p",
    "s": "top_n_sigma",
    "m": "min_p",
    "t": "temperature",
    "x": "xtc",
    "i": "infill",
    "e": "penalties",
    "a": "adaptive_p",
}

NAMES = frozenset(BY_CHARACTER.values())

OTHER_NAMES = {
    "temp": "temperature",
    "nucleus": "top_p",
    "typ": "typ_p",
    "typical": "typ_p",
    "typical_p": "typ_p",
    **{name.replace("_", "-"): name for name in NAMES},
    **{name.replace("_", ""): name for name in NAMES},
}


def decode_samplers(value: Any) -> tuple[str, ...]:
    """Canonical names, in order. Raises `InvalidRequest` that names the unknown one."""
    if isinstance(value, str):
        return tuple(_by_character(character, index) for index, character in enumerate(value))
    if not isinstance(value, list):
        raise InvalidRequest("Field 'samplers': a list of names, or a text of characters, is expected", param="samplers")
    return tuple(_by_name(name, index) for index, name in enumerate(value))


def _by_character(character: str, index: int) -> str:
    if character in BY_CHARACTER:
        return BY_CHARACTER[character]
    raise InvalidRequest(
        f"Field 'samplers': {character!r} at position {index} stands for no sampler; known are {' '.join(BY_CHARACTER)}",
        param="samplers",
    )


def _by_name(name: Any, index: int) -> str:
    if isinstance(name, str):
        plain = name.lower()
        plain = OTHER_NAMES.get(plain, plain)
        if plain in NAMES:
            return plain
    at = f"samplers.{index}"
    raise InvalidRequest(f"Field '{at}': no such sampler; known are {', '.join(sorted(NAMES))}", param=at)
