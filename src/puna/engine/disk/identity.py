"""What a saved state belongs to: the model file, and the settings that decide what its bytes mean."""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import blake2b

from puna.engine.disk.statefile import Identity

SAMPLES = 64
SAMPLE_BYTES = 16 << 10
HEAD_BYTES = 1 << 20


def model_digest(path: str, metadata: Mapping[str, str]) -> str:
    """A digest of a model file: its length, its beginning, and samples of the weights all through it.

    Other weights under the same header, as fine-tuning makes them, differ in nearly every sample. Reads about 2 MB.
    """
    digest = blake2b(digest_size=16)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        digest.update(size.to_bytes(8, "little"))
        digest.update(file.read(HEAD_BYTES))
        for i in range(1, SAMPLES + 1):
            file.seek(max(0, size * i // SAMPLES - SAMPLE_BYTES))
            digest.update(file.read(SAMPLE_BYTES))
    for key, value in sorted(metadata.items()):
        digest.update(f"{key}={value}\n".encode())
    return digest.hexdigest()


def describe_context(values: Mapping[str, object]) -> str:
    """Settings in words, those that are as nearly everywhere left out."""
    return ", ".join(f"{name} {value}" for name, value in values.items() if value not in ("", 0, 0.0, "auto"))


def identify(path: str, metadata: Mapping[str, str], context: Mapping[str, object]) -> Identity:
    """The identity of states of the model at `path` under these settings. Raises `OSError` when it cannot be read."""
    return Identity(model_digest(path, metadata), describe_context(context))
