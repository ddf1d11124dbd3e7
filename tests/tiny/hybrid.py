"""Decoders with both kinds of memory: layers with a running state, and layers with attention (jamba, granitehybrid, lfm2)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.tiny.attention import SCALE, VocabKind, attention, describe, feed_forward, make_vocab
from tests.tiny.recurrent import mamba2_block, mamba_block
from tests.tiny.vocab import CHATML, Vocab
from tests.tiny.weights import FileType, WeightFile


def write_jamba(
    path: Path,
    *,
    seed: int = 0,
    n_layer: int = 4,
    n_embd: int = 64,
    n_head: int = 4,
    n_head_kv: int = 2,
    n_state: int = 16,
    n_conv: int = 4,
    n_ctx_train: int = 2048,
    vocab: VocabKind | Vocab = "spm",
    chat_template: str | None = CHATML,
    scale: float = SCALE,
    file_type: FileType = "f32",
) -> Path:
    """Write a jamba decoder, whose every second layer has attention, and return `path`."""
    words = make_vocab(vocab)
    n_inner, n_rank = 2 * n_embd, max(1, n_embd // 16)
    n_ff, n_head_dim = 2 * n_embd, n_embd // n_head
    file = WeightFile(path, "jamba", seed=seed, file_type=file_type)
    heads = [n_head_kv if i % 2 else 0 for i in range(n_layer)]
    describe(file, words, "tiny jamba", chat_template, n_layer, n_embd, n_ff, n_head, heads, n_ctx_train)
    writer = file.writer
    writer.add_ssm_conv_kernel(n_conv)
    writer.add_ssm_inner_size(n_inner)
    writer.add_ssm_state_size(n_state)
    writer.add_ssm_time_step_rank(n_rank)

    file.both_ends(len(words), n_embd, gain=scale)

    def running(block: str) -> None:
        mamba_block(file, block, n_embd, n_inner, n_state, n_conv, n_rank)
        file.vector(block + "ssm_dt_norm.weight", n_rank, mean=1.0)
        file.vector(block + "ssm_b_norm.weight", n_state, mean=1.0)
        file.vector(block + "ssm_c_norm.weight", n_state, mean=1.0)

    def attending(block: str) -> None:
        attention(file, block, n_embd, n_head_dim, n_head, n_head_kv)

    _layers(file, n_layer, n_embd, n_ff, running, attending)
    return file.finish()


def write_granite_hybrid(
    path: Path,
    *,
    seed: int = 0,
    n_layer: int = 4,
    n_embd: int = 64,
    n_head: int = 4,
    n_head_kv: int = 2,
    n_state: int = 16,
    n_conv: int = 4,
    n_ctx_train: int = 2048,
    vocab: VocabKind | Vocab = "spm",
    chat_template: str | None = CHATML,
    scale: float = SCALE,
    file_type: FileType = "f32",
) -> Path:
    """Write a granitehybrid decoder, of mamba2 layers and every second one with attention, and return `path`."""
    words = make_vocab(vocab)
    n_inner, n_ff, n_head_dim = 2 * n_embd, 2 * n_embd, n_embd // n_head
    file = WeightFile(path, "granitehybrid", seed=seed, file_type=file_type)
    heads = [n_head_kv if i % 2 else 0 for i in range(n_layer)]
    describe(file, words, "tiny granite hybrid", chat_template, n_layer, n_embd, n_ff, n_head, heads, n_ctx_train)
    writer = file.writer
    writer.add_rope_dimension_count(n_head_dim)
    writer.add_ssm_conv_kernel(n_conv)
    writer.add_ssm_inner_size(n_inner)
    writer.add_ssm_state_size(n_state)
    writer.add_ssm_time_step_rank(n_head)
    writer.add_ssm_group_count(1)

    file.both_ends(len(words), n_embd, gain=scale)

    def running(block: str) -> None:
        mamba2_block(file, block, n_embd, n_inner, n_state, n_conv, n_head)

    def attending(block: str) -> None:
        attention(file, block, n_embd, n_head_dim, n_head, n_head_kv)

    _layers(file, n_layer, n_embd, n_ff, running, attending)
    return file.finish()


def write_lfm2(
    path: Path,
    *,
    seed: int = 0,
    n_layer: int = 4,
    n_embd: int = 64,
    n_head: int = 4,
    n_head_kv: int = 2,
    n_conv: int = 3,
    n_ctx_train: int = 2048,
    vocab: VocabKind | Vocab = "spm",
    chat_template: str | None = CHATML,
    scale: float = SCALE,
    file_type: FileType = "f32",
) -> Path:
    """Write an lfm2 decoder, of short convolutions and every second layer with attention, and return `path`."""
    words = make_vocab(vocab)
    n_ff, n_head_dim = 2 * n_embd, n_embd // n_head
    file = WeightFile(path, "lfm2", seed=seed, file_type=file_type)
    heads = [n_head_kv if i % 2 else 0 for i in range(n_layer)]
    describe(file, words, "tiny lfm2", chat_template, n_layer, n_embd, n_ff, n_head, heads, n_ctx_train)
    file.writer.add_shortconv_l_cache(n_conv)
    file.writer.add_rope_freq_base(1000000.0)

    file.both_ends(len(words), n_embd, gain=scale, norm="token_embd_norm")

    def running(block: str) -> None:
        file.normal(block + "shortconv.conv.weight", (n_embd, n_conv), size=n_conv**-0.5)
        file.matrix(block + "shortconv.in_proj.weight", n_embd, 3 * n_embd)
        file.matrix(block + "shortconv.out_proj.weight", n_embd, n_embd)

    def attending(block: str) -> None:
        attention(file, block, n_embd, n_head_dim, n_head, n_head_kv)
        for norm in ("attn_q_norm", "attn_k_norm"):
            file.vector(f"{block}{norm}.weight", n_head_dim, mean=1.0)

    _layers(file, n_layer, n_embd, n_ff, running, attending)
    return file.finish()


def _layers(
    file: WeightFile, n_layer: int, n_embd: int, n_ff: int, running: Callable[[str], None], attending: Callable[[str], None]
) -> None:
    """All layers; every second one is `attending`. Both write what a layer of their kind has beside norms and feed-forward."""
    for i in range(n_layer):
        block = f"blk.{i}."
        file.vector(block + "attn_norm.weight", n_embd, mean=1.0)
        (attending if i % 2 else running)(block)
        file.vector(block + "ffn_norm.weight", n_embd, mean=1.0)
        feed_forward(file, block, n_embd, n_ff)
