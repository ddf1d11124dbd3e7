"""Options of serving several models."""

from __future__ import annotations

from puna.settings.option import Option
from puna.settings.values import Integer, Number, Switch, Text

MODELS = "Several models"

MODELS_OPTIONS = (
    Option(
        flags=("--hf-repo", "-hf", "-hfr"),
        kind=Text("USER/REPO[:QUANT]"),
        target="models.repository",
        variables=("LLAMA_ARG_HF_REPO",),
        group=MODELS,
        help="serve a model from huggingface.co, fetched first if it is not there; HF_TOKEN opens private ones",
    ),
    Option(
        flags=("--offline",),
        kind=Switch(),
        target="models.offline",
        variables=("LLAMA_ARG_OFFLINE",),
        group=MODELS,
        help="fetch nothing: use what is there",
    ),
    Option(
        flags=("--fim-model",),
        kind=Text("FILE"),
        target="models.fim_model",
        group=MODELS,
        help="a model of its own for /infill",
    ),
    Option(
        flags=("--embedding-model",),
        kind=Text("FILE"),
        target="models.embedding_model",
        group=MODELS,
        help="a model of its own for embeddings",
    ),
    Option(
        flags=("--rerank-model",),
        kind=Text("FILE"),
        target="models.rerank_model",
        group=MODELS,
        help="a model of its own for ranking",
    ),
    Option(
        flags=("--models-dir",),
        kind=Text("DIR"),
        target="models.models_dir",
        variables=("LLAMA_ARG_MODELS_DIR",),
        group=MODELS,
        help="a folder of GGUF files; each is a model under its file's name, loaded when a request names it",
    ),
    Option(
        flags=("--models-preset", "--catalogue"),
        kind=Text("FILE"),
        target="models.catalogue",
        variables=("LLAMA_ARG_MODELS_PRESET",),
        group=MODELS,
        help="a TOML or INI file of models: a table for each, with a name, flags of its own and `alias`",
    ),
    Option(
        flags=("--models-max",),
        kind=Integer(0),
        target="models.most",
        variables=("LLAMA_ARG_MODELS_MAX",),
        group=MODELS,
        help="most models that are loaded at once; the least recently used goes; 0: no limit",
    ),
    Option(
        flags=("--models-memory",),
        kind=Integer(-1, unit=1 << 20, metavar="MIB"),
        target="models.memory",
        group=MODELS,
        help="MiB that loaded models may take; 0: three quarters of what is free at the start, -1: no limit",
    ),
    Option(
        flags=("--models-autoload",),
        off_flags=("--no-models-autoload",),
        kind=Switch(),
        target="models.autoload",
        variables=("LLAMA_ARG_MODELS_AUTOLOAD",),
        group=MODELS,
        help="load the model that a request names; off: only POST /models/load does",
    ),
    Option(
        flags=("--sleep-idle-seconds",),
        kind=Number(-1),
        target="models.sleep_idle",
        variables=("LLAMA_ARG_SLEEP_IDLE_SECONDS",),
        group=MODELS,
        help="unload a model that has had no request for so long; the next one loads it again; 0: never",
    ),
)
