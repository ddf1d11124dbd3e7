"""A decoder whose memory is one state that cannot be cut: mamba."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.tiny.attention import SCALE, VocabKind, make_vocab
from tests.tiny.vocab import CHATML, Vocab
from tests.tiny.weights import FileType, WeightFile


def write_mamba(
    path: Path,
    *,
    seed: int = 0,
    n_layer: int = 2,
    n_embd: int = 64,
    n_state: int = 16,
    n_conv: int = 4,
    n_ctx_train: int = 2048,
    vocab: VocabKind | Vocab = "spm",
    chat_template: str | None = CHATML,
    scale: float = SCALE,
    file_type: FileType = "f32",
) -> Path:
    """Write a mamba decoder and return `path`."""
    words = make_vocab(vocab)
    n_inner = 2 * n_embd
    n_rank = max(1, n_embd // 16)
    file = WeightFile(path, "mamba", seed=seed, file_type=file_type)
    writer = file.writer
    writer.add_name("tiny mamba")
    writer.add_context_length(n_ctx_train)
    writer.add_embedding_length(n_embd)
    writer.add_block_count(n_layer)
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_ssm_conv_kernel(n_conv)
    writer.add_ssm_inner_size(n_inner)
    writer.add_ssm_state_size(n_state)
    writer.add_ssm_time_step_rank(n_rank)
    writer.add_vocab_size(len(words))
    words.add_to(writer)
    if chat_template is not None:
        writer.add_chat_template(chat_template)

    file.both_ends(len(words), n_embd, gain=scale)
    for i in range(n_layer):
        block = f"blk.{i}."
        file.vector(block + "attn_norm.weight", n_embd, mean=1.0)
        mamba_block(file, block, n_embd, n_inner, n_state, n_conv, n_rank)
    return file.finish()


def mamba_block(file: WeightFile, block: str, n_embd: int, n_inner: int, n_state: int, n_conv: int, n_rank: int) -> None:
    """What a mamba layer has beside its norm."""
    # The state's decay rates must be below zero or it grows without bound.
    decay = -np.tile(np.arange(1, n_state + 1, dtype=np.float32), (n_inner, 1))
    file.matrix(block + "ssm_in.weight", n_embd, 2 * n_inner)
    file.normal(block + "ssm_conv1d.weight", (n_inner, n_conv), size=n_conv**-0.5)
    file.vector(block + "ssm_conv1d.bias", n_inner)
    file.matrix(block + "ssm_x.weight", n_inner, n_rank + 2 * n_state)
    file.normal(block + "ssm_dt.weight", (n_inner, n_rank), size=n_rank**-0.5)
    file.vector(block + "ssm_dt.bias", n_inner, mean=-2.0)
    file.exact(block + "ssm_a", decay)
    file.vector(block + "ssm_d", n_inner, mean=1.0)
    file.matrix(block + "ssm_out.weight", n_inner, n_embd)


def mamba2_block(file: WeightFile, block: str, n_embd: int, n_inner: int, n_state: int, n_conv: int, n_head: int) -> None:
    """What a mamba2 layer of one group has beside its norm."""
    n_mixed = n_inner + 2 * n_state
    file.matrix(block + "ssm_in.weight", n_embd, n_inner + n_mixed + n_head)
    file.normal(block + "ssm_conv1d.weight", (n_mixed, n_conv), size=n_conv**-0.5)
    file.vector(block + "ssm_conv1d.bias", n_mixed)
    file.vector(block + "ssm_dt.bias", n_head, mean=-2.0)
    file.exact(block + "ssm_a", -np.arange(1, n_head + 1, dtype=np.float32).reshape(n_head, 1))
    file.normal(block + "ssm_d", (n_head, 1), size=1.0)
    file.exact(block + "ssm_norm.weight", np.ones((1, n_inner), np.float32))
    file.matrix(block + "ssm_out.weight", n_inner, n_embd)
