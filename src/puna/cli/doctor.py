"""`puna doctor`."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence

from puna import __version__, calibration_file, machine, settings
from puna.cli.model import NO_MODEL, with_model
from puna.config import EngineSettings
from puna.doctor import checks
from puna.doctor.engine import examine
from puna.errors import StartupError
from puna.gguf import Header, read_header

USAGE = """usage: puna doctor [-m FILE] [--no-trial] [FLAGS OF puna serve]

Prints what puna runs on and the first thing wrong, in words. The exit code is 1 if something is wrong.
  --no-trial    do not load the model to read a few tokens with it
"""

INTERESTING = ("sse4_2", "avx", "avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_tile",
               "amx_int8", "amx_bf16", "asimd", "asimddp", "asimdhp", "i8mm", "bf16", "sve", "sve2")  # fmt: skip
"""Features that the engine's kernels make use of."""


def run(arguments: Sequence[str]) -> int:
    """Print the facts and the verdict. Never raises for what it finds."""
    if any(word in {"-h", "--help"} for word in arguments):
        print(USAGE)
        return 0
    facts = gather([word for word in arguments if word != "--no-trial"], trial="--no-trial" not in arguments)
    for name, value in describe(facts):
        print(f"{name:<10} {value}")
    for note in checks.notes(facts):
        print(f"note       {note}")
    wrong = checks.problem(facts)
    print(f"\nwrong: {wrong}" if wrong else "\nnothing is wrong")
    return 1 if wrong else 0


def gather(arguments: Sequence[str], *, trial: bool) -> checks.Facts:
    """Look at everything. The model is tried only if its header is sound, and the engine can be loaded."""
    chosen, settings_error = _settings(arguments)
    path = chosen.model if chosen else ""
    header, model_error = _header(path) if path else (None, "" if settings_error else NO_MODEL)
    facts = checks.Facts(
        engine=examine(()),
        tried=False,
        model=header,
        model_error=model_error,
        missing_parts=checks.missing_parts(header) if header else (),
        settings_error=settings_error,
        features=machine.cpu_features(),
        compiler=compiler_version(),
        free_memory=machine.free_memory(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        quota=machine.cpu_quota(),
    )
    if chosen is not None and header is not None and facts.engine.description:
        facts = dataclasses.replace(facts, calibration=calibration(chosen, facts.engine.description))
    if not trial or header is None or checks.problem(facts):
        return facts
    return dataclasses.replace(facts, engine=examine([path]), tried=True)


def _settings(arguments: Sequence[str]) -> tuple[EngineSettings | None, str]:
    try:
        return with_model(settings.load(arguments, os.environ).settings).engine, ""
    except StartupError as error:
        return None, str(error)


def calibration(chosen: EngineSettings, engine: str) -> tuple[str, ...]:
    """What is known of how the model is computed fastest here, as lines."""
    if not chosen.calibrate:
        return ("switched off",)
    folder = calibration_file.folder(os.environ)
    if folder is None:
        return ("measured at every start: there is no home to keep it in",)
    try:
        file = calibration_file.path(folder, calibration_file.key_here(chosen, engine))
        found = calibration_file.read(folder, file.stem)
    except (OSError, ValueError) as error:
        return (f"cannot be used, measured again at the next start: {error}",)
    if found is None:
        return ("none yet, measured at the next start",)
    return (found.report(), *(made.report() for made in found.comparisons), f"kept in {file}; delete it to measure again")


def _header(path: str) -> tuple[Header | None, str]:
    try:
        return read_header(path), ""
    except StartupError as error:
        return None, str(error)


def compiler_version() -> str:
    """The first line of what the C++ compiler says of its version; empty without one."""
    compiler = next((name for name in ("c++", "g++", "clang++") if shutil.which(name)), "")
    if not compiler:
        return ""
    output = subprocess.run([compiler, "--version"], capture_output=True, text=True, errors="replace", check=False).stdout
    return output.splitlines()[0] if output else ""


def describe(facts: checks.Facts) -> Iterable[tuple[str, str]]:
    """The facts as (name, words), in the order they are printed."""
    yield "puna", f"{__version__}, Python {sys.version.split()[0]} at {sys.executable}"
    engine = facts.engine
    yield "engine", (engine.description or "not loaded") + (", with an accelerator" if engine.accelerator else "")
    yield "compiler", facts.compiler or "none found"
    features = [name for name in INTERESTING if name in facts.features]
    yield "cpu", machine.cpu_name() + (f" ({' '.join(features)})" if features else "")
    quota = f", limited to {facts.quota:g} cores' worth of time" if facts.quota is not None else ""
    yield "threads", f"{machine.usable_cores()} (this process may run on {facts.cores} of {os.cpu_count()} cores{quota})"
    yield "memory", "unknown" if facts.free_memory is None else f"{checks.in_gib(facts.free_memory)} free"
    if facts.model:
        yield from _describe_model(facts.model)
    for number, line in enumerate(facts.calibration):
        yield "" if number else "speed", line
    if facts.tried:
        yield "trial", "a prompt was read" if engine.trial_passed else "failed"


def _describe_model(model: Header) -> Iterable[tuple[str, str]]:
    size = f"{model.n_params / 1e6:,.0f}M parameters, {model.quantisation or 'no weights'}, {checks.in_gib(model.file_bytes)}"
    yield "model", model.path
    yield "", f"{repr(model.name) + ', ' if model.name else ''}{model.architecture or 'unknown architecture'}, {size}"
    yield "", f"trained for {model.n_ctx_train} tokens of context, {model.n_vocab} tokens in the vocabulary"
