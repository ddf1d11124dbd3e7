"""How deep and how wide JSON text is, found out before a parser recurses into it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

PIECE = 1 << 20
"""Bytes looked at in one go, so that the arrays in between stay small."""

_STEPS = np.zeros(256, np.int32)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1


class Shape(NamedTuple):
    """The brackets of a JSON text, those in strings left out."""

    depth: int
    """Most levels that are open at once."""
    containers: int
    """Lists and objects in all."""
    values: int
    """Commas: what lists and objects hold beside the first item of each."""
    members: int
    """Members of objects alone."""


def shape(raw: bytes) -> Shape:
    """Measure `raw`, which need not be valid, in time that grows with its length only."""
    data = np.frombuffer(raw.replace(b"\\\\", b"").replace(b'\\"', b""), np.uint8)
    quotes = level = deepest = containers = commas = members = 0
    for start in range(0, len(data), PIECE):
        piece = data[start : start + PIECE]
        before = quotes + np.cumsum(piece == ord('"'), dtype=np.int64)
        outside = before % 2 == 0
        steps = np.where(outside, _STEPS[piece], 0)
        levels = level + np.cumsum(steps, dtype=np.int64)
        quotes, level = int(before[-1]), int(levels[-1])
        deepest = max(deepest, int(levels.max()))
        containers += int(np.count_nonzero(steps == 1))
        commas += int(np.count_nonzero(outside & (piece == ord(","))))
        members += int(np.count_nonzero(outside & (piece == ord(":"))))
    return Shape(deepest, containers, commas, members)
