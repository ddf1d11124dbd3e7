"""What the facts mean. Pure: the first thing wrong, and what is worth knowing besides."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from puna import gguf
from puna.doctor.engine import EngineFacts
from puna.gguf import Header

FIRST_GOOD_GCC = 13
"""Older ones miscompile the engine's AMX kernels."""
GIB = 1 << 30


@dataclass(frozen=True)
class Facts:
    """Everything the judgement rests on."""

    engine: EngineFacts
    tried: bool
    """Whether the engine was asked to read a prompt with the model."""
    model: Header | None = None
    model_error: str = ""
    """Why there is no header."""
    missing_parts: tuple[str, ...] = ()
    """Files of a model in several parts that are not there."""
    settings_error: str = ""
    features: frozenset[str] = frozenset()
    compiler: str = ""
    """First line of what the C++ compiler says of its version; empty without one."""
    free_memory: int | None = None
    cores: int = 1
    quota: float | None = None
    calibration: tuple[str, ...] = ()
    """What is known of how the model is computed fastest, as lines."""


def problem(facts: Facts) -> str:
    """The first thing wrong, with what to do about it; empty if nothing is."""
    return facts.settings_error or _engine_problem(facts) or _model_problem(facts) or _trial_problem(facts)


def _engine_problem(facts: Facts) -> str:
    engine = facts.engine
    if engine.description:
        return ""
    if engine.signal == "SIGILL":
        return "the engine was built for another CPU: loading it ends with an illegal instruction. Build it here: make engine"
    return engine.error or "the engine could not be loaded"


def _model_problem(facts: Facts) -> str:
    if facts.model_error:
        return facts.model_error
    model = facts.model
    if model is None:
        return ""
    if facts.missing_parts:
        return f"{model.path} is one part of several, and {facts.missing_parts[0]} is not beside it"
    if model.missing_bytes:
        return (
            f"{model.path} is cut short: its header promises {model.needed_bytes} bytes, {model.missing_bytes} of them are "
            "missing. Download or copy it again"
        )
    if not model.architecture:
        return f"{model.path} does not say which architecture the model has (general.architecture); it cannot be loaded"
    if model.n_tensors == 0:
        return f"{model.path} holds a vocabulary but no weights; it cannot answer anything"
    if model.architecture == "clip":
        return f"{model.path} is the image or audio part of a model; pass the language model's file to -m"
    if facts.free_memory is not None and model.file_bytes > facts.free_memory:
        return (
            f"{model.path} needs {in_gib(model.file_bytes)} of memory and {in_gib(facts.free_memory)} are free. "
            "Take a smaller model or a smaller quantisation, or end other programs"
        )
    return ""


def _trial_problem(facts: Facts) -> str:
    engine = facts.engine
    if not facts.tried or facts.model is None:
        return ""
    if engine.trial_passed:
        return ""
    if engine.signal == "SIGILL":
        return (
            "the engine ends with an illegal instruction when it reads a prompt: it was built for another CPU, or by a "
            f"GCC older than {FIRST_GOOD_GCC} for a CPU with AMX. Build it again with `make engine`; until then "
            "`puna serve` works, slower, with --no-repack"
        )
    return engine.error or "the engine did not finish reading a prompt, and did not say why"


def notes(facts: Facts) -> list[str]:
    """What is not wrong but worth knowing."""
    said: list[str] = []
    built_with = set(re.findall(r"\w+", facts.engine.description))
    has_amx = any(feature.startswith("amx") for feature in facts.features)
    if has_amx and is_old_gcc(facts.compiler):
        said.append(
            f"this CPU has AMX and the compiler is a GCC older than {FIRST_GOOD_GCC}: pip alone would build a broken engine; "
            "`make engine` leaves AMX out"
        )
    if facts.engine.description and "avx2" in facts.features and "AVX2" not in built_with:
        said.append("the engine was built without AVX2, which this CPU has: it is slow. Build it here: make engine")
    if facts.quota is not None and facts.quota < facts.cores:
        said.append(f"the control group allows {facts.quota:g} cores' worth of time; more threads than that slow the engine down")
    model = facts.model
    if model and facts.free_memory is not None and model.file_bytes * 3 // 2 > facts.free_memory:
        said.append("memory is short for this model: the context and the number of slots will be small")
    if not facts.engine.decoder:
        said.append("the model does not generate text: it is served for embeddings, or for ranking if it is made for that")
    elif model and model.architecture and not model.metadata.get("tokenizer.chat_template"):
        said.append("the model brings no chat template; the chat routes use ChatML unless --chat-template says otherwise")
    return said


def is_old_gcc(version: str) -> bool:
    """Whether a compiler's version line names a GCC that gets AMX wrong."""
    if not version or "clang" in version.lower():
        return False
    numbers = re.findall(r"(?<![\w.+-])(\d+)\.\d+(?:\.\d+)?(?![\w.])", version)
    return bool(numbers) and int(numbers[-1]) < FIRST_GOOD_GCC


def missing_parts(header: Header) -> tuple[str, ...]:
    """Which files of a model in several parts are not there."""
    count = header.metadata.get("split.count", 0)
    return tuple(name for name in gguf.parts(header.path, count if isinstance(count, int) else 0) if not Path(name).is_file())


def in_gib(size: int) -> str:
    """A number of bytes for people."""
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / (1 << 20):.0f} MiB"
