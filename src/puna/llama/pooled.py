"""A context that makes vectors instead of text."""

from __future__ import annotations

import ctypes
from typing import Literal

import numpy as np

from puna.errors import StartupError
from puna.llama import library
from puna.llama.adapted import Adapted
from puna.llama.batch import Batch, VectorBatch
from puna.llama.context import ROPE_SCALING, DecodeError, FloatArray, NoRoom
from puna.llama.library import C
from puna.llama.model import Model
from puna.pooling import Pooling

POOLING: dict[Pooling, int] = {
    "none": C.LLAMA_POOLING_TYPE_NONE,
    "mean": C.LLAMA_POOLING_TYPE_MEAN,
    "cls": C.LLAMA_POOLING_TYPE_CLS,
    "last": C.LLAMA_POOLING_TYPE_LAST,
    "rank": C.LLAMA_POOLING_TYPE_RANK,
}
NAMES: dict[int, Pooling] = {number: name for name, number in POOLING.items()}

ATTENTION = {"auto": -1, "causal": 0, "non-causal": 1}


class PooledContext(Adapted):
    """Owns a `llama_context` in which every token has an output. Sequences live for one batch, or a few, until `clear`."""

    def __init__(
        self,
        model: Model,
        *,
        pooling: Pooling,
        n_ctx: int,
        n_ubatch: int,
        n_seq_max: int,
        n_threads: int,
        flash_attention: bool,
        attention: Literal["auto", "causal", "non-causal"] = "auto",
        rope_scaling: str = "auto",
        rope_freq_base: float = 0.0,
        rope_freq_scale: float = 0.0,
    ) -> None:
        """Room for `n_ctx` tokens in all, `n_ubatch` in a batch. Raises `StartupError` when memory does not suffice."""
        super().__init__()
        params = C.llama_context_default_params()
        params.n_ctx = n_ctx
        params.n_batch = n_ubatch
        params.n_ubatch = n_ubatch
        params.n_seq_max = n_seq_max
        params.n_threads = n_threads
        params.n_threads_batch = n_threads
        params.embeddings = True
        params.pooling_type = POOLING[pooling]
        params.attention_type = ATTENTION[attention]
        params.kv_unified = True  # a batch of many sequences is computed at once, whatever their lengths
        params.flash_attn_type = C.LLAMA_FLASH_ATTN_TYPE_ENABLED if flash_attention else C.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.rope_scaling_type = ROPE_SCALING[rope_scaling]
        params.rope_freq_base = rope_freq_base
        params.rope_freq_scale = rope_freq_scale
        params.swa_full = False
        params.no_perf = True
        library.log.take_problems()
        self._p = C.llama_init_from_model(model.pointer, params)
        if not self._p:
            reason = "; ".join(library.log.take_problems()[-2:]) or "unknown reason"
            raise StartupError(f"cannot make a context for inputs of {n_ubatch} tokens: {reason}")
        self._memory = C.llama_get_memory(self._p)
        self._encode = model.has_encoder and not C.llama_model_has_decoder(model.pointer)
        self._float_p = ctypes.POINTER(ctypes.c_float)
        self.pooling: Pooling = NAMES[C.llama_pooling_type(self._p)]
        self.causal = bool(C.llama_get_causal_attn(self._p))
        """Whether a token sees only those before it."""
        self.width = model.n_labels if self.pooling == "rank" else model.n_embd_out
        """Floats in a vector."""

    @property
    def has_memory(self) -> bool:
        """Whether tokens of one batch are still known in the next."""
        return bool(self._memory)

    @property
    def can_continue(self) -> bool:
        """Whether a sequence may come in several batches, because its vector is that of its last token, or each has its own."""
        return self.has_memory and self.causal and self.pooling in ("last", "rank", "none")

    def use_threads(self, n: int) -> None:
        """Compute on so many threads from the next batch on."""
        C.llama_set_n_threads(self._p, n, n)

    def compute_together(self, batch: VectorBatch) -> None:
        """The same as `compute`, with every vector seeing all the others."""
        C.llama_set_causal_attn(self._p, False)
        try:
            self.compute(batch)
        finally:
            C.llama_set_causal_attn(self._p, self.causal)

    def compute(self, batch: Batch | VectorBatch) -> None:
        """Compute the batch. Raises `NoRoom` or `DecodeError`; what was in memory before is as it was."""
        run = C.llama_encode if self._encode else C.llama_decode
        code: int = run(self._p, batch.struct)
        if code == 0:
            return
        problems = "; ".join(library.log.take_problems()[-2:])
        if code == 1:
            raise NoRoom(f"no free cells for a batch of {batch.n}: {problems}")
        raise DecodeError(f"computing {batch.n} tokens failed with code {code}: {problems}")

    def vector(self, sequence: int) -> bytes:
        """The pooled vector of a sequence of the last batch, as 32-bit floats."""
        pointer = C.llama_get_embeddings_seq(self._p, sequence)
        if not pointer:
            raise DecodeError(f"sequence {sequence} of the last batch has no vector")
        return ctypes.string_at(pointer, 4 * self.width)

    def vectors(self, n_rows: int) -> FloatArray:
        """Without pooling: the vectors of the last batch's rows, to be copied before the next. Shape: (n_rows, width)."""
        pointer = C.llama_get_embeddings(self._p)
        if not pointer:
            raise DecodeError("the last batch has no vectors")
        return np.ctypeslib.as_array(ctypes.cast(pointer, self._float_p), shape=(n_rows, self.width))

    def clear(self) -> None:
        """Forget every sequence."""
        if self._memory:
            C.llama_memory_clear(self._memory, False)

    def close(self) -> None:
        if self._p:
            C.llama_free(self._p)
            self._p = None
