"""From settings to a draft model that fits the model."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from puna.config import EngineSettings
from puna.engine import sizing
from puna.engine.contexts import free_memory
from puna.engine.draft_model import DraftModel
from puna.engine.draft_policy import DraftPolicy
from puna.engine.draft_vocab import difference
from puna.engine.drafting import Drafting
from puna.engine.recorder import Recorder
from puna.errors import StartupError
from puna.llama import library
from puna.llama.context import Context, DecodeError
from puna.llama.model import Model
from puna.tuning import Tuning

FIRST_CELLS = 2048
"""Tokens of all sequences together that the draft model's context has room for at first; it grows when they need more."""

MEMORY_SHARE = 0.1
"""Share of the free memory that its cells may grow to."""


@dataclass(frozen=True, slots=True)
class Drafts:
    """A loaded draft model, not yet at work."""

    model: Model
    settings: EngineSettings

    def context(self, tuning: Tuning, n_seats: int, cells: int) -> Context:
        """A context in which `n_seats` sequences share so many cells. Raises `StartupError` for want of memory."""
        settings = self.settings
        quantized = settings.draft_cache_type_v not in ("f32", "f16", "bf16")
        n_threads = settings.draft_n_threads or tuning.n_threads
        return Context(
            self.model,
            n_ctx=cells,
            n_seq_max=n_seats,
            n_batch=settings.n_batch,
            n_ubatch=settings.n_ubatch,
            n_threads=n_threads,
            n_threads_batch=settings.draft_n_threads_batch or settings.draft_n_threads or tuning.n_threads_batch,
            unified=True,
            flash_attention=tuning.flash_long or quantized,
            cache_type_k=settings.draft_cache_type_k,
            cache_type_v=settings.draft_cache_type_v,
            whole_window=True,
        )


def load_drafts(settings: EngineSettings, target: Model, *, mmap: bool, safe_mode: bool) -> Drafts | None:
    """Load the draft model, if there is to be one, and see that it fits. Raises `StartupError` with what is wrong."""
    if not settings.draft_model:
        return None
    name = f"the draft model {settings.draft_model}"
    if not target.has_decoder:
        raise StartupError(f"{name} has nothing to do: {target.path} does not generate text; leave --model-draft out")
    if target.runs:
        raise StartupError(f"{name} cannot help {target.path}, whose memory cannot be cut where a guess was wrong")
    model = Model(
        settings.draft_model,
        n_gpu_layers=settings.draft_n_gpu_layers,
        mmap=mmap,
        mlock=settings.mlock,
        repack=settings.repack and not safe_mode,
    )
    if not model.has_decoder:
        raise StartupError(f"{name} does not generate text")
    if model.runs:
        raise StartupError(f"{name} cannot guess: its memory cannot be cut where a guess was wrong")
    if unlike := difference(target.vocab, model.vocab):
        raise StartupError(f"{name} has another vocabulary than {target.path}: {unlike}")
    return Drafts(model, settings)


def make_drafting(
    drafts: Drafts | None,
    settings: EngineSettings,
    tuning: Tuning,
    size: sizing.Size,
    target: Model,
    recorder: Recorder,
    warn: Callable[[str], None],
) -> Drafting:
    """What drafts. Raises `StartupError` when there is no memory for the draft model's context."""
    # Processor time tells what work costs whatever else the machine does; it says nothing of an accelerator's.
    clock = time.perf_counter if library.has_accelerator() else time.process_time
    if drafts is None:
        return Drafting(DraftPolicy(adaptive=settings.draft_adaptive), can_cut=not target.runs, clock=clock)
    model = drafts.model
    policy = DraftPolicy(adaptive=settings.draft_adaptive, model_share=model.n_bytes / max(1, target.n_bytes))
    length = min(settings.draft_n_ctx or size.n_ctx, model.n_ctx_train or size.n_ctx)
    cell = sizing.cell_bytes(
        model.metadata, model.n_layer, model.n_embd, settings.draft_cache_type_k, settings.draft_cache_type_v
    )
    affordable = int(free_memory() * MEMORY_SHARE) // cell
    most = min(length * size.n_slots, max(length if settings.draft_n_ctx else FIRST_CELLS, affordable))
    guesser = DraftModel(
        partial(drafts.context, tuning, size.n_slots),
        policy=policy,
        clock=clock,
        n_seats=size.n_slots,
        n_tokens=min(model.vocab.n_tokens, target.vocab.n_tokens),
        length=min(length, most),
        first=min(FIRST_CELLS, most),
        most=most,
        n_batch=settings.n_batch,
        recorder=recorder,
        warn=warn,
    )
    try:
        guesser.warm_up()
    except DecodeError as error:
        raise StartupError(f"the draft model {settings.draft_model} cannot compute: {error}") from error
    return Drafting(policy, can_cut=not target.runs, model=guesser, clock=clock)
