"""A LoRA adapter for the tiny llama."""

from __future__ import annotations

from pathlib import Path

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
) -> Path:
    """Write an adapter for `write_llama` of the same width, large enough to change what it says, and return `path`."""
    file = WeightFile(path, "llama", seed=seed)
    file.writer.add_type("adapter")
    file.writer.add_string("adapter.type", "lora")
    file.writer.add_float32("adapter.lora.alpha", alpha)
    for i in range(n_layer):
        for part in ("attn_q", "attn_output"):
            name = f"blk.{i}.{part}.weight"
            file.matrix(name + ".lora_a", n_embd, rank, gain=size)
            file.matrix(name + ".lora_b", rank, n_embd, gain=size)
    return file.finish()
