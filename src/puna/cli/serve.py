"""`puna serve`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from puna import gguf, settings
from puna.cli.model import NO_MODEL, with_model
from puna.config import Settings
from puna.errors import StartupError

INTRODUCTION = """usage: puna serve [-m FILE] [FLAGS]

Serves a GGUF model over HTTP on http://127.0.0.1:8080 unless told otherwise. Each option can also be given as the
variable PUNA_<NAME>, as llama.cpp's LLAMA_ARG_<NAME>, or in a TOML file (--config); flags win over variables, variables
over the file.
"""


def run(arguments: Sequence[str]) -> int:
    """Serve until told to stop."""
    if any(word in {"-h", "--help", "--usage"} for word in arguments):
        print(INTRODUCTION)
        print(settings.option_help(min(120, shutil.get_terminal_size((100, 24)).columns)))
        return 0
    loaded = settings.load(arguments, os.environ)
    if loaded.settings.models.repository:
        loaded = replace(loaded, settings=_fetched(loaded.settings))
    if not loaded.settings.models.named:
        loaded = replace(loaded, settings=with_model(loaded.settings))
    chosen = loaded.settings
    if not chosen.engine.model and not chosen.models.named:
        raise StartupError(NO_MODEL)
    if chosen.engine.model:
        gguf.check_start(chosen.engine.model)
    for note in loaded.notes:
        print(f"puna: {note}", file=sys.stderr)
    # imported late: a wrong flag is reported at once, without waiting for the web framework
    from puna.server.run import run as run_server

    return run_server(loaded)


def _fetched(chosen: Settings) -> Settings:
    """The settings with the path of the model that was fetched."""
    if chosen.engine.model:
        raise StartupError("-hf and -m name two models; one of them is enough")
    # imported late: nobody else should wait for it
    from puna.models.downloads import fetch

    wanted = chosen.models
    path = fetch(
        wanted.repository,
        offline=wanted.offline,
        token=os.environ.get("HF_TOKEN") or None,
        say=lambda text: print(f"puna: {text}", file=sys.stderr),
    )
    return structs.replace(chosen, engine=structs.replace(chosen.engine, model=path))
