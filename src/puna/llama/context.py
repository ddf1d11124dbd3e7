"""A context: the memory of sequences, and decoding into it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

from puna.errors import StartupError
from puna.llama import library
from puna.llama.adapted import Adapted
from puna.llama.batch import Batch, VectorBatch
from puna.llama.batch import FloatArray as FloatArray
from puna.llama.library import C
from puna.llama.model import Model
from puna.llama.state import HEAD, State, StateFormatError, StateShape, adapt, learn

CACHE_TYPES = {
    "f32": C.GGML_TYPE_F32,
    "f16": C.GGML_TYPE_F16,
    "bf16": 30,  # GGML_TYPE_BF16, which the bindings do not name
    "q8_0": C.GGML_TYPE_Q8_0,
    "q5_1": C.GGML_TYPE_Q5_1,
    "q5_0": C.GGML_TYPE_Q5_0,
    "q4_1": C.GGML_TYPE_Q4_1,
    "q4_0": C.GGML_TYPE_Q4_0,
    "iq4_nl": C.GGML_TYPE_IQ4_NL,
}
"""Names of the types that KV cells may have, and the engine's numbers for them."""

ROPE_SCALING = {"auto": -1, "none": 0, "linear": 1, "yarn": 2}


class DecodeError(Exception):
    """The engine refused or failed to compute a batch."""


class NoRoom(DecodeError):
    """The batch found no free cells; nothing was computed."""


class Context(Adapted):
    """Owns a `llama_context`. Not safe for concurrent use: one thread drives it."""

    def __init__(
        self,
        model: Model,
        *,
        n_ctx: int,
        n_seq_max: int,
        n_batch: int,
        n_ubatch: int,
        n_threads: int,
        n_threads_batch: int,
        unified: bool,
        flash_attention: bool,
        cache_type_k: str = "f16",
        cache_type_v: str = "f16",
        rope_scaling: str = "auto",
        rope_freq_base: float = 0.0,
        rope_freq_scale: float = 0.0,
        shape: StateShape | None = None,
        whole_window: bool = False,
    ) -> None:
        """`n_ctx` counts the cells of all sequences together. `shape` is how saved states are laid out, if that is known.
        With `whole_window` layers with a sliding window keep what has left it, so that sequences can be cut at any place.

        Raises `StartupError` when memory does not suffice."""
        super().__init__()
        params = C.llama_context_default_params()
        params.n_ctx = n_ctx
        params.n_seq_max = n_seq_max
        params.n_batch = n_batch
        params.n_ubatch = n_ubatch
        params.n_threads = n_threads
        params.n_threads_batch = n_threads_batch
        params.kv_unified = unified
        params.flash_attn_type = C.LLAMA_FLASH_ATTN_TYPE_ENABLED if flash_attention else C.LLAMA_FLASH_ATTN_TYPE_DISABLED
        params.type_k = CACHE_TYPES[cache_type_k]
        params.type_v = CACHE_TYPES[cache_type_v]
        params.rope_scaling_type = ROPE_SCALING[rope_scaling]
        params.rope_freq_base = rope_freq_base
        params.rope_freq_scale = rope_freq_scale
        params.swa_full = whole_window  # saved states hold the window only: these cannot be cut in any case
        params.no_perf = True
        library.log.take_problems()
        self._p = C.llama_init_from_model(model.pointer, params)
        if not self._p:
            reason = "; ".join(library.log.take_problems()[-2:]) or "unknown reason"
            raise StartupError(
                f"cannot make a context of {n_ctx} cells ({n_seq_max} sequences): {reason}; a smaller -c or -np needs less memory"
            )
        self._memory = C.llama_get_memory(self._p)
        self._n_stream = 1 if unified else n_seq_max
        self.shape = shape
        """How saved states are laid out; None while that is not known, which lets them fit contexts of the same form only."""
        self._plain = model.can_cut
        self._transposed = not flash_attention
        self.n_vocab = model.vocab.n_tokens
        self.n_ctx = int(C.llama_n_ctx(self._p))
        self.n_ctx_seq = int(C.llama_n_ctx_seq(self._p))
        """Most cells one sequence can have."""
        self._float_p = ctypes.POINTER(ctypes.c_float)

    # decoding

    def decode(self, batch: Batch | VectorBatch) -> None:
        """Compute the batch. Raises `NoRoom` when cells are lacking, `DecodeError` for anything else."""
        code: int = C.llama_decode(self._p, batch.struct)
        if code == 0:
            return
        problems = "; ".join(library.log.take_problems()[-2:])
        if code == 1:
            raise NoRoom(f"no free cells for a batch of {batch.n}: {problems}")
        raise DecodeError(f"decode failed with code {code}: {problems}")

    def decode_together(self, batch: VectorBatch) -> None:
        """The same, with every vector seeing all the others, which have to fit into one step of the engine."""
        C.llama_set_causal_attn(self._p, False)
        try:
            self.decode(batch)
        finally:
            C.llama_set_causal_attn(self._p, True)

    def logits(self, row: int) -> FloatArray:
        """The logits of batch row `row` as a writable view, valid until the next decode. Shape: (n_vocab,)."""
        pointer = C.llama_get_logits_ith(self._p, row)
        if not pointer:
            raise DecodeError(f"row {row} of the last batch has no logits")
        return np.ctypeslib.as_array(ctypes.cast(pointer, self._float_p), shape=(self.n_vocab,))

    def set_threads(self, n_threads: int, n_threads_batch: int) -> None:
        """Compute single tokens, and several at a time, with so many threads from now on."""
        C.llama_set_n_threads(self._p, n_threads, n_threads_batch)

    def set_abort(self, should_abort: Callable[[], bool] | None) -> None:
        """Let `should_abort` end a running decode, which then raises `DecodeError` with code 2."""
        self._abort = C.ggml_abort_callback(lambda _data: should_abort()) if should_abort else C.ggml_abort_callback(0)
        C.llama_set_abort_callback(self._p, self._abort, None)

    # sequences

    def clear(self) -> None:
        """Drop all sequences, and set all cells to zero."""
        C.llama_memory_clear(self._memory, True)

    @property
    def can_shift(self) -> bool:
        """Whether positions of cells can be changed."""
        return bool(C.llama_memory_can_shift(self._memory))

    def shift(self, sequence: int, start: int, count: int) -> None:
        """Drop `count` positions from `start` on and move what follows down to them.

        The cells are brought up to date by the next decode; until then the sequence must not be saved.
        """
        self.move(sequence, start + count, -1, start)

    def move(self, sequence: int, start: int, stop: int, target: int) -> None:
        """Move the positions from `start` to before `stop` (-1 for all the rest) down to `target`, dropping what lies between.

        The same holds as for `shift`. Cells that another sequence shares would move for it too.
        """
        if target < start:
            C.llama_memory_seq_rm(self._memory, sequence, target, start)
            C.llama_memory_seq_add(self._memory, sequence, start, stop, target - start)

    def cut(self, sequence: int, start: int) -> bool:
        """Drop a sequence's cells at positions from `start`; False where this kind of memory cannot do that."""
        return bool(C.llama_memory_seq_rm(self._memory, sequence, start, -1))

    def drop(self, sequence: int) -> None:
        """Drop all of a sequence."""
        C.llama_memory_seq_rm(self._memory, sequence, -1, -1)

    def copy(self, source: int, target: int, start: int = -1, end: int = -1) -> None:
        """Give `target` the cells of `source` in [start, end). Between split streams only a whole copy is allowed."""
        C.llama_memory_seq_cp(self._memory, source, target, start, end)

    def length(self, sequence: int) -> int:
        """How many positions the sequence covers: its largest position plus one."""
        return int(C.llama_memory_seq_pos_max(self._memory, sequence)) + 1

    # state

    def save(self, sequence: int) -> State:
        """The sequence's whole state in host memory."""
        size = int(C.llama_state_seq_get_size(self._p, sequence))
        state = np.empty(size, np.uint8)
        pointer = ctypes.cast(state.ctypes.data, ctypes.POINTER(ctypes.c_uint8))
        written = int(C.llama_state_seq_get_data(self._p, pointer, size, sequence))
        if written != size:
            raise DecodeError(f"sequence {sequence} gave {written} bytes of state, {size} were announced")
        return state

    def learn_shape(self, sequence: int) -> StateShape | None:
        """How the states of this model are laid out, seen from a sequence with at least one token; None if it is not known."""
        n_tail = 0 if self._plain else self._tail_size(sequence)
        try:
            self.shape = learn(self.save(sequence), n_tail)
        except StateFormatError:
            self.shape = None
        return self.shape

    def _tail_size(self, sequence: int) -> int:
        return int(C.llama_state_seq_get_size_ext(self._p, sequence, C.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY)) - HEAD

    def load(self, sequence: int, state: State, length: int) -> bool:
        """Put a saved state into `sequence`; False, and an empty sequence, when the engine does not take it.

        Only the first `length` tokens are wanted. Memory that can be cut gets no others; elsewhere the state is put back whole.

        The state may come from a context of another size; where states' shape is known also from one with another number
        of sequences or with flash attention the other way, but not if they have a tail.
        """
        if self.shape is not None:
            try:
                state = adapt(state, self.shape, length, n_stream=self._n_stream, transposed=self._transposed)
            except StateFormatError:
                self.drop(sequence)
                return False
        pointer = ctypes.cast(state.ctypes.data, ctypes.POINTER(ctypes.c_uint8))
        if int(C.llama_state_seq_set_data(self._p, pointer, state.size, sequence)) == state.size:
            return True
        self.drop(sequence)
        return False

    def close(self) -> None:
        if self._p:
            C.llama_free(self._p)
            self._p = None

    def __enter__(self) -> Context:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def pointer(self) -> Any:
        """For the handles of this package only."""
        return self._p
