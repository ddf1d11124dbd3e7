"""A model: its weights, or only its vocabulary."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cached_property
from types import TracebackType
from typing import Any

from puna import gguf
from puna.errors import StartupError
from puna.llama import library
from puna.llama.library import C
from puna.llama.vocab import Vocab

LONGEST_VALUE = 4096
"""Metadata values beyond this length (token lists, merges) are left out of `Model.metadata`; templates are not."""


WITHOUT_MEMORY = frozenset(
    (
        *("bert", "jina-bert-v2", "jina-bert-v3", "nomic-bert", "nomic-bert-moe", "neo-bert", "eurobert", "modern-bert"),
        *("gemma-embedding", "wavtokenizer-dec", "dream", "llada", "llada-moe", "rnd1"),
    )
)
"""Architectures whose contexts keep nothing from one batch to the next, so that texts can only be looked at as wholes."""


class Model:
    """Owns a `llama_model`. Close it after every context made from it."""

    def __init__(
        self,
        path: str,
        *,
        vocab_only: bool = False,
        n_gpu_layers: int = -1,
        mmap: bool = True,
        mlock: bool = False,
        repack: bool = True,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        """Load a GGUF file. Raises `StartupError` with the engine's own reason when that fails."""
        library.start()
        gguf.check_start(path)
        params = C.llama_model_default_params()
        params.vocab_only = vocab_only
        params.n_gpu_layers = n_gpu_layers
        params.load_mode = C.LLAMA_LOAD_MODE_MLOCK if mlock else C.LLAMA_LOAD_MODE_MMAP if mmap else C.LLAMA_LOAD_MODE_NONE
        params.use_extra_bufts = repack
        self._progress = progress
        self._callback = C.llama_progress_callback(self._report)  # the field must outlive the call
        params.progress_callback = self._callback
        library.log.take_problems()
        self._p = C.llama_model_load_from_file(path.encode(), params)
        if not self._p:
            raise StartupError(f"cannot load {path}: {_why_not(path)}")
        self.path = path
        self.vocab = Vocab(C.llama_model_get_vocab(self._p))

    def _report(self, progress: float, _data: object) -> bool:
        if self._progress is not None:
            self._progress(progress)
        return True

    @property
    def pointer(self) -> Any:
        """For the handles of this package only."""
        return self._p

    @property
    def n_ctx_train(self) -> int:
        """Context length the model was trained for, in tokens."""
        return int(C.llama_model_n_ctx_train(self._p))

    @property
    def n_embd(self) -> int:
        return int(C.llama_model_n_embd(self._p))

    @property
    def n_embd_out(self) -> int:
        """Width of the vectors that the model puts out."""
        return int(C.llama_model_n_embd_out(self._p))

    @property
    def n_labels(self) -> int:
        """Outputs of the classification head, if there is one."""
        return int(C.llama_model_n_cls_out(self._p))

    @property
    def rerank_template(self) -> str | None:
        """The model's own text around a query and a document."""
        raw = C.llama_model_chat_template(self._p, b"rerank")
        return raw.decode("utf-8", "replace") if raw else None

    @property
    def n_layer(self) -> int:
        return int(C.llama_model_n_layer(self._p))

    @property
    def n_params(self) -> int:
        return int(C.llama_model_n_params(self._p))

    @property
    def n_bytes(self) -> int:
        """Size of all tensors in bytes."""
        return int(C.llama_model_size(self._p))

    @property
    def n_swa(self) -> int:
        """Width of the sliding attention window, 0 where there is none."""
        return int(C.llama_model_n_swa(self._p))

    @property
    def can_cut(self) -> bool:
        """Whether a suffix of a sequence can be dropped.

        Not where memory is a running state, and not where it is a sliding window: what has left the window is gone.
        """
        return not (self.runs or self.n_swa)

    @property
    def runs(self) -> bool:
        """Whether memory is, in part at least, a running state, which knows nothing of how it came about."""
        return bool(C.llama_model_is_recurrent(self._p) or C.llama_model_is_hybrid(self._p))

    @property
    def has_decoder(self) -> bool:
        """Whether the model generates text."""
        metadata = self.metadata
        arch = metadata.get("general.architecture", "")
        if arch in WITHOUT_MEMORY or metadata.get(f"{arch}.attention.causal") == "false":
            return False
        return bool(C.llama_model_has_decoder(self._p))  # which is yes of every architecture but T5's encoder

    @property
    def has_encoder(self) -> bool:
        return bool(C.llama_model_has_encoder(self._p))

    @property
    def description(self) -> str:
        buffer = ctypes.create_string_buffer(256)
        C.llama_model_desc(self._p, buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace")

    @property
    def chat_template(self) -> str | None:
        """The model's default Jinja template."""
        raw = C.llama_model_chat_template(self._p, None)
        return raw.decode("utf-8", "replace") if raw else None

    @property
    def chat_template_variants(self) -> dict[str, str]:
        """The model's further Jinja templates by name."""
        prefix = "tokenizer.chat_template."
        keys = (self._text(C.llama_model_meta_key_by_index, index) for index in range(C.llama_model_meta_count(self._p)))
        names = [key.removeprefix(prefix) for key in keys if key.startswith(prefix)]
        found = {name: C.llama_model_chat_template(self._p, name.encode()) for name in names}
        return {name: raw.decode("utf-8", "replace") for name, raw in found.items() if raw}

    @cached_property
    def metadata(self) -> dict[str, str]:
        """The file's key-value entries as text, long ones left out."""
        entries = {}
        for index in range(C.llama_model_meta_count(self._p)):
            key = self._text(C.llama_model_meta_key_by_index, index)
            value = self._text(C.llama_model_meta_val_str_by_index, index)
            if len(value) <= LONGEST_VALUE:
                entries[key] = value
        return entries

    def _text(self, read: Callable[[Any, int, Any, int], int], index: int) -> str:
        buffer = ctypes.create_string_buffer(512)
        n = read(self._p, index, buffer, len(buffer))
        if n >= len(buffer):
            buffer = ctypes.create_string_buffer(n + 1)
            read(self._p, index, buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace")

    def close(self) -> None:
        if self._p:
            C.llama_model_free(self._p)
            self._p = None

    def __enter__(self) -> Model:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _why_not(path: str) -> str:
    """Why a model was not loaded: what its file shows, else what the engine said. Raises `StartupError` for a bad header."""
    problems = library.log.take_problems()
    header = gguf.read_header(path)
    if header.missing_bytes:
        return f"{header.missing_bytes:,} of {header.needed_bytes:,} bytes are missing: the download or copy was cut short"
    return next((line for line in problems if "error" in line or "invalid" in line), "the engine gives no reason")
