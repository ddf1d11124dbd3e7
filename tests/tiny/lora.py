"""What changes the tiny llama: LoRA adapters and control vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from gguf import GGUFValueType

from tests.tiny.weights import WeightFile


def write_lora(
    path: Path,
    *,
    seed: int = 0,
    n_layer: int = 2,
    n_embd: int = 64,
    rank: int = 4,
    alpha: float = 4.0,
    size: float = 1.0,
    arch: str = "llama",
    invocation: Sequence[int] = (),
    says: tuple[int, int] | None = None,
    n_vocab: int = 0,
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """Write an adapter for `write_llama` of the same width, large enough to change what it says, and return `path`.

    With `says` the model, which has a vocabulary of `n_vocab`, says nothing but these two tokens, now one and now the
    other. With an `invocation` the adapter is an activated one.
    """
    file = WeightFile(path, arch, seed=seed)
    file.writer.add_type("adapter")
    file.writer.add_string("adapter.type", "lora")
    file.writer.add_float32("adapter.lora.alpha", alpha)
    if invocation:
        file.writer.add_key_value("adapter.alora.invocation_tokens", list(invocation), GGUFValueType.ARRAY, GGUFValueType.UINT32)
    for key, value in (metadata or {}).items():
        file.writer.add_string(key, value)
    for i in range(n_layer):
        for part in ("attn_q", "attn_output"):
            name = f"blk.{i}.{part}.weight"
            file.matrix(name + ".lora_a", n_embd, rank, gain=size)
            file.matrix(name + ".lora_b", rank, n_embd, gain=size)
    if says is not None:
        words = np.zeros((n_vocab, 1), np.float32)
        words[says[0]], words[says[1]] = 1e4, -1e4
        file.matrix("output.weight.lora_a", n_embd, 1)
        file.exact("output.weight.lora_b", words)
    return file.finish()


def write_control_vector(path: Path, *, seed: int = 0, n_embd: int = 64, layers: Sequence[int] = (1,), size: float = 3.0) -> Path:
    """Write directions for these layers, large enough to change what the tiny llama says, and return `path`."""
    file = WeightFile(path, "controlvector", seed=seed)
    for layer in layers:
        file.vector(f"direction.{layer}", n_embd, size=size)
    return file.finish()
