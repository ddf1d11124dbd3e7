"""Pictures and sounds in prompts, and what is known of a model that takes them, as plain values."""

from __future__ import annotations

from typing import Literal

import msgspec

MEDIA = -1
"""Stands in a prompt where a picture or a sound does."""


class Media(msgspec.Struct, frozen=True, kw_only=True):
    """A decoded picture or sound."""

    kind: Literal["image", "audio"]
    digest: str
    """SHA-256 over kind, size and data, in hexadecimal digits: equal for equal media only."""
    data: bytes
    """Of a picture its rows of pixels from the top, 3 bytes (RGB) each; of a sound its samples, one channel at the rate of
    `MediaFacts`, as little-endian 32-bit floats."""
    width: int = 0
    """Pixels; 0 for sound."""
    height: int = 0


class MediaFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the model's projector takes beside text."""

    path: str
    vision: bool
    audio: bool
    audio_rate: int = 0
    """Samples a second that sound has to have; 0 where none is taken."""
    pooled: bool = False
    """Whether inputs to embed or to rank may hold them too."""
