"""Makes a model's contexts: alike in everything but size and way of computing."""

from __future__ import annotations

from dataclasses import dataclass

from puna import machine
from puna.config import EngineSettings
from puna.engine import sizing
from puna.engine.calibration import Way
from puna.errors import StartupError
from puna.llama.context import Context
from puna.llama.control_vector import ControlVector
from puna.llama.model import Model
from puna.llama.state import StateShape
from puna.tuning import Tuning


@dataclass(slots=True)
class ContextMaker:
    """Everything about a context that does not change while the worker lives."""

    model: Model
    settings: EngineSettings
    vector: ControlVector | None
    shape: StateShape | None = None
    """How saved states are laid out, once that is known."""

    @property
    def cell_bytes(self) -> int:
        """Bytes that a token takes."""
        model, settings = self.model, self.settings
        return sizing.cell_bytes(model.metadata, model.n_layer, model.n_embd, settings.cache_type_k, settings.cache_type_v)

    def make(self, tuning: Tuning, length: int, n_seats: int) -> Context:
        """A context for `n_seats` sequences of `length` tokens."""
        flash = tuning.flash_short if length <= sizing.SHORT_N_CTX else tuning.flash_long
        return self.make_way(Way(tuning.layout, flash, tuning.n_threads, tuning.n_threads_batch, deep=False), n_seats, length)

    def make_way(self, way: Way, n_sequences: int, length: int) -> Context:
        """A context that computes in this way. Raises `StartupError` with what it needs and what is free."""
        settings = self.settings
        try:
            context = Context(
                self.model,
                n_ctx=length * n_sequences,
                n_seq_max=n_sequences,
                n_batch=settings.n_batch,
                n_ubatch=settings.n_ubatch,
                n_threads=way.n_threads,
                n_threads_batch=way.n_threads_batch,
                unified=way.layout == "unified",
                flash_attention=way.flash,
                cache_type_k=settings.cache_type_k,
                cache_type_v=settings.cache_type_v,
                rope_scaling=settings.rope_scaling,
                rope_freq_base=settings.rope_freq_base,
                rope_freq_scale=settings.rope_freq_scale,
                shape=self.shape,
            )
        except StartupError as error:
            raise StartupError(
                f"{error.message} (cells for {n_sequences} x {length} tokens take about "
                f"{self.cell_bytes * n_sequences * length / 1e6:,.0f} MB, {free_memory() / 1e6:,.0f} MB are free)"
            ) from error
        if self.vector is not None:
            context.use_control_vector(self.vector)
        return context


def free_memory() -> int:
    """Bytes that can still be taken, a guess where the system does not say."""
    free = machine.free_memory()
    return sizing.UNKNOWN_FREE if free is None else free
