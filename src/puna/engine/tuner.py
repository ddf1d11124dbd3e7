"""From settings, rules, an earlier measurement or a new one to how a model is computed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from puna import calibration_file, machine
from puna.config import EngineSettings
from puna.engine import trials
from puna.engine.calibration import Open, calibrate, thread_counts
from puna.engine.contexts import ContextMaker, free_memory
from puna.llama import library
from puna.llama.model import Model
from puna.tuning import Comparison, Tuning

SECONDS = 2.5
"""Most time for measuring. A round that has begun is finished, so a little more may pass."""

MEMORY_SHARE = 0.1
"""Most of the free memory that the measurement's contexts may take."""


@dataclass(frozen=True, slots=True)
class Situation:
    """What besides the settings decides how a model can be computed."""

    can_cut: bool
    accelerator: bool
    cores: int
    physical_cores: int


def situation(model: Model) -> Situation:
    """The situation this process is in with a model."""
    return Situation(
        can_cut=model.can_cut,
        accelerator=library.has_accelerator(),
        cores=machine.usable_cores(),
        physical_cores=machine.physical_cores(),
    )


def rules(settings: EngineSettings, here: Situation) -> Tuning:
    """What the user said, and where nothing was said what is usually right.

    On CPUs flash attention is faster for short sequences and slower, by a third and more, for long ones. Quantized
    values need it, and accelerators like it. More threads than cores would wait for each other for ever and a day.
    """
    adaptive = settings.flash_attention == "auto" and not _needs_flash(settings) and not here.accelerator
    flash_long = settings.flash_attention != "off" and not adaptive
    n_threads = min(settings.n_threads or here.cores, here.cores)
    return Tuning(
        layout="unified" if settings.layout == "unified" else "split",
        flash_short=(adaptive and here.can_cut) or flash_long,
        flash_long=flash_long,
        n_threads=n_threads,
        n_threads_batch=min(settings.n_threads_batch or n_threads, here.cores),
    )


def to_find(settings: EngineSettings, here: Situation) -> Open:
    """What is left to be found out by measuring."""
    open_threads = settings.n_threads == 0
    counts = thread_counts(here.cores, here.physical_cores) if open_threads else ()
    return Open(
        flash=settings.flash_attention == "auto" and not _needs_flash(settings),
        layout=settings.layout == "auto" and settings.n_slots != 1,
        short=here.can_cut,
        n_threads=counts,
        n_threads_batch=counts if settings.n_threads_batch == 0 else (),
    )


def _needs_flash(settings: EngineSettings) -> bool:
    return settings.cache_type_v not in ("f32", "f16", "bf16")


def tune(
    model: Model,
    settings: EngineSettings,
    maker: ContextMaker,
    *,
    safe_mode: bool,
    known: Tuning | None,
    environment: Mapping[str, str] = os.environ,
    warn: Callable[[str], None],
) -> Tuning:
    """How to compute this model: kept from an earlier start, or measured now and kept.

    `known` is what an earlier worker of the same server found.
    """
    if known is not None:
        return known
    here = situation(model)
    start, wanted = rules(settings, here), to_find(settings, here)
    if not settings.calibrate or wanted.nothing:
        return start
    folder = calibration_file.folder(environment)
    key = calibration_file.key_here(settings, library.describe(), safe_mode=safe_mode)
    kept = None
    if folder is not None:
        try:
            kept = calibration_file.read(folder, key)
        except (OSError, ValueError) as error:
            warn(f"the calibration in {calibration_file.path(folder, key)} cannot be used: {error}")
        if kept is not None and kept.complete:
            return replace(kept, source="stored")
    if 2 * maker.cell_bytes * (trials.CROWD + 1) * (trials.DEEP + trials.MARGIN) > MEMORY_SHARE * free_memory():
        warn("there is too little memory for calibrating")
        return start
    made = kept.comparisons if kept else ()
    found = _measure(maker, start, wanted, settings.n_slots or trials.CROWD, made, warn)
    if folder is not None and found.comparisons:  # else the machine was busy, and another start may tell more
        try:
            calibration_file.write(folder, key, settings.model, found)
        except OSError as error:
            warn(f"the calibration cannot be kept: {error}")
    return found


def _measure(
    maker: ContextMaker,
    start: Tuning,
    wanted: Open,
    n_sequences: int,
    known: Sequence[Comparison],
    warn: Callable[[str], None],
) -> Tuning:
    began = time.perf_counter()
    bench = trials.Trials(
        maker.make_way,
        n_vocab=maker.model.vocab.n_tokens,
        n_sequences=n_sequences,
        can_cut=maker.model.can_cut,
        seconds=SECONDS,
        warn=warn,
    )
    try:
        found = calibrate(start, wanted, bench.measure, known)
    finally:
        bench.close()
    return replace(found, source="measured", seconds=round(time.perf_counter() - began, 2))
