"""LoRA adapters: low-rank matrices that are added to a model's own."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Mapping
from typing import Any

from puna import gguf
from puna.errors import StartupError
from puna.gguf import Header, Tensor
from puna.llama import library
from puna.llama.library import C
from puna.llama.model import Model

F32, STRING, ARRAY = 6, 8, 9
"""GGUF's numbers for types of metadata values."""

KEYS = {
    "general.type": STRING,
    "general.architecture": STRING,
    "adapter.type": STRING,
    "adapter.lora.alpha": F32,
    "adapter.alora.invocation_tokens": ARRAY,
}
"""What the engine reads of an adapter's metadata: it ends the process for a value of another type."""

NO_WEIGHTS = frozenset({"I8", "I16", "I32", "I64", "F64", "Q8_1", "Q8_K"})
"""Types of tensors that nothing can be multiplied with."""


class Lora:
    """A loaded adapter. It belongs to its model, which frees it; contexts made before it was loaded cannot use it."""

    def __init__(self, model: Model, path: str) -> None:
        """Load a file that `check_lora` has found good. Raises `StartupError` with the engine's reason when that fails."""
        library.log.take_problems()
        self._p = C.llama_adapter_lora_init(model.pointer, path.encode())
        if not self._p:
            problems = library.log.take_problems()
            reason = next((line.partition("adapter: ")[2] for line in problems if "failed to apply" in line), "")
            raise StartupError(f"cannot load the adapter {path}: {reason or 'the engine gives no reason'}")
        self.path = path
        self.digest = file_digest(path)
        """Of all the file holds."""
        self.task_name = self._text("adapter.lora.task_name")
        """What the adapter is for, and what a prompt for it begins with; empty where it does not say."""
        self.prompt_prefix = self._text("adapter.lora.prompt_prefix")
        n = int(C.llama_adapter_get_alora_n_invocation_tokens(self._p))
        self.invocation: tuple[int, ...] = tuple(C.llama_adapter_get_alora_invocation_tokens(self._p)[:n]) if n else ()
        """The tokens in a prompt from which on it applies; none for one that always does."""
        if unknown := [token for token in self.invocation if not 0 <= token < model.vocab.n_tokens]:
            raise StartupError(f"the adapter {path} is invoked by token {unknown[0]}, which is not in the model's vocabulary")

    def _text(self, key: str) -> str:
        buffer = ctypes.create_string_buffer(1024)
        n = C.llama_adapter_meta_val_str(self._p, key.encode(), buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace") if n >= 0 else ""

    @property
    def pointer(self) -> Any:
        """For the handles of this package only."""
        return self._p


def check_lora(path: str, model: Mapping[str, Tensor], architecture: str) -> None:
    """Raise `StartupError` unless the file is an adapter for a model with these tensors, and whole.

    The engine checks less, and ends the process for some of what it does not check.
    """
    header = gguf.read_header(path, what="adapter")
    reason = _kind(header, architecture) or _pairs(header) or _shapes(header, model)
    if reason:
        raise StartupError(f"cannot use the adapter {path}: {reason}")


def file_digest(path: str) -> bytes:
    """A digest of a file's content. Raises `StartupError` if it cannot be read."""
    digest = hashlib.blake2b(digest_size=16)
    try:
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise StartupError(f"{path} cannot be read: {error.strerror or error}") from error
    return digest.digest()


def _kind(header: Header, architecture: str) -> str:
    for key, kind in KEYS.items():
        if header.kinds.get(key, kind) != kind:
            return f"its entry {key!r} has the wrong type"
    kind_of_file = header.metadata.get("general.type", "")
    if kind_of_file != "adapter":
        return f"the file holds a {kind_of_file or 'model'}, not an adapter"
    if header.metadata.get("adapter.type") != "lora":
        return f"it is an adapter of the type {header.metadata.get('adapter.type', '')!r}, not 'lora'"
    if header.architecture != architecture:
        return f"it was made for a model of the architecture {header.architecture!r}, this one is {architecture!r}"
    if header.missing_bytes:
        return f"{header.missing_bytes:,} of {header.needed_bytes:,} bytes are missing: the download or copy was cut short"
    return ""


def _pairs(header: Header) -> str:
    names = [name for name in header.tensors if not name.endswith("_norm.weight")]
    for name in names:
        base, _, part = name.rpartition(".")
        other = {"lora_a": f"{base}.lora_b", "lora_b": f"{base}.lora_a"}.get(part)
        if other is None:
            return f"its tensor {name!r} is neither of the two of a pair"
        if other not in header.tensors:
            return f"its tensor {name!r} lacks the other one of the pair"
        if header.tensors[name].type in NO_WEIGHTS or header.tensors[name].type.startswith("type "):
            return f"its tensor {name!r} has the type {header.tensors[name].type}, which no weights have"
    return "" if names else "it holds no tensors"


def _shapes(header: Header, model: Mapping[str, Tensor]) -> str:
    for name in header.tensors:
        base, _, part = name.rpartition(".")
        if part != "lora_a":
            continue
        weight = model.get(base)
        if weight is None:
            return f"the model has no tensor {base!r}"
        a, b = header.tensors[name].shape, header.tensors[f"{base}.lora_b"].shape
        if not _fits(base, weight.shape, a, b):
            return f"its matrices of {list(a)} and {list(b)} do not fit {base!r}, which is {list(weight.shape)}"
    return ""


def _fits(name: str, weight: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    if len(weight) < 2 or not len(weight) == len(a) == len(b) or not weight[2:] == a[2:] == b[2:] or 0 in (*a, *b):
        return False
    if name.endswith("token_embd.weight"):  # a table: the first matrix is looked up in, not multiplied with
        return a[0] == b[0] and a[1] == weight[1] and b[1] == weight[0]
    return a[0] == weight[0] and a[1] == b[0] and b[1] == weight[1]
