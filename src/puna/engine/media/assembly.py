"""Finding and loading a model's projector."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from puna.config import EngineSettings
from puna.engine.contexts import free_memory
from puna.engine.disk.identity import model_digest
from puna.engine.media.encodings import Encodings
from puna.engine.media.reader import MediaReader
from puna.errors import StartupError
from puna.gguf import find_projector
from puna.llama import library
from puna.llama.media import Projector
from puna.llama.model import Model

SHARE = 16
"""The part of free memory that encoded pictures and sounds may take."""

MOST = 512 << 20
"""Bytes of it that they take at most unless told to."""


def load_media(settings: EngineSettings, model: Model, n_threads: int, warn: Callable[[str], None]) -> MediaReader | None:
    """What reads media for a model that has a projector.

    Raises `StartupError` for a named one that does not load; one that only lies beside the model is then left out.
    """
    path = settings.mmproj
    found = "" if path or not settings.mmproj_auto else find_projector(settings.model)
    if not path and not found:
        return None
    try:
        return _load(path or found, settings, model, n_threads)
    except StartupError as error:
        if path:
            raise
        warn(f"no pictures or sound: {error.message} (it lies beside the model; --no-mmproj leaves it out)")
        return None


def _load(path: str, settings: EngineSettings, model: Model, n_threads: int) -> MediaReader:
    projector = Projector(
        path,
        model,
        n_threads=n_threads,
        offload=settings.mmproj_offload,
        image_min_tokens=settings.image_min_tokens,
        image_max_tokens=settings.image_max_tokens,
    )
    told = {
        "engine": library.version(),
        "least tokens": str(settings.image_min_tokens),
        "most tokens": str(settings.image_max_tokens),
    }
    try:
        identity = model_digest(path, told)
    except OSError as error:
        raise StartupError(f"{Path(path)} cannot be read: {error.strerror or error}") from error
    capacity = settings.media_cache
    if capacity < 0:
        capacity = min(MOST, free_memory() // SHARE)
    return MediaReader(projector, identity, Encodings(capacity), most_at_once=min(settings.n_ubatch, settings.n_batch))
