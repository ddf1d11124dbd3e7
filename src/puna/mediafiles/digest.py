"""Decoded media with a name for what they are."""

from __future__ import annotations

import hashlib
from typing import Literal

from puna.types import Media


def media(kind: Literal["image", "audio"], data: bytes, width: int = 0, height: int = 0) -> Media:
    """A picture of these pixels, or a sound of these samples, with the digest that equal ones share."""
    digest = hashlib.sha256(f"{kind} {width} {height} ".encode())
    digest.update(data)
    return Media(kind=kind, digest=digest.hexdigest(), data=data, width=width, height=height)
