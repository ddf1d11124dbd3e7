"""Decoders with attention: plain (llama) and with a sliding window (gemma3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from tests.tiny.vocab import CHATML, Vocab, bpe_vocab, spm_vocab
from tests.tiny.weights import FileType, WeightFile

VocabKind = Literal["spm", "bpe"]

# Logits of a random network are nearly flat: rounding then decides which token is best. The last matrix is made this
# much larger, which spreads them with a standard deviation of about SCALE and leaves a gap near 1 between best and second.
SCALE = 4.0


def write_llama(
    path: Path,
    *,
    seed: int = 0,
    n_layer: int = 2,
    n_embd: int = 64,
    n_head: int = 4,
    n_head_kv: int = 2,
    n_ctx_train: int = 2048,
    vocab: VocabKind | Vocab = "spm",
    chat_template: str | Sequence[Mapping[str, str]] | None = CHATML,
    scale: float = SCALE,
    file_type: FileType = "f32",
    name: str = "tiny llama",
) -> Path:
    """Write a llama decoder and return `path`."""
    words = make_vocab(vocab)
    n_head_dim = n_embd // n_head
    n_ff = 2 * n_embd
    file = WeightFile(path, "llama", seed=seed, file_type=file_type)
    describe(file, words, name, chat_template, n_layer, n_embd, n_ff, n_head, n_head_kv, n_ctx_train)
    file.writer.add_rope_dimension_count(n_head_dim)
    file.writer.add_rope_freq_base(10000.0)

    file.both_ends(len(words), n_embd, gain=scale)
    for i in range(n_layer):
        block = f"blk.{i}."
        file.vector(block + "attn_norm.weight", n_embd, mean=1.0)
        attention(file, block, n_embd, n_head_dim, n_head, n_head_kv)
        file.vector(block + "ffn_norm.weight", n_embd, mean=1.0)
        feed_forward(file, block, n_embd, n_ff)
    return file.finish()


def write_gemma3(
    path: Path,
    *,
    seed: int = 0,
    n_layer: int = 4,
    n_embd: int = 64,
    n_head: int = 4,
    n_head_kv: int = 1,
    n_window: int = 32,
    n_ctx_train: int = 2048,
    vocab: VocabKind | Vocab = "spm",
    chat_template: str | None = CHATML,
    scale: float = SCALE,
    file_type: FileType = "f32",
) -> Path:
    """Write a gemma3 decoder, whose every second layer sees only the last `n_window` tokens, and return `path`."""
    words = make_vocab(vocab)
    n_head_dim = n_embd // n_head
    n_ff = 2 * n_embd
    file = WeightFile(path, "gemma3", seed=seed, file_type=file_type)
    describe(file, words, "tiny gemma3", chat_template, n_layer, n_embd, n_ff, n_head, n_head_kv, n_ctx_train)
    file.writer.add_key_length(n_head_dim)
    file.writer.add_value_length(n_head_dim)
    file.writer.add_rope_freq_base(1000000.0)
    file.writer.add_sliding_window(n_window)
    file.writer.add_sliding_window_pattern(2)

    # The architecture multiplies embeddings by the root of their length, hence the small ones.
    file.table("token_embd.weight", len(words), n_embd, size=n_embd**-0.5)
    file.vector("output_norm.weight", n_embd, mean=1.0)
    file.matrix("output.weight", n_embd, len(words), gain=scale)
    for i in range(n_layer):
        block = f"blk.{i}."
        for norm in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
            file.vector(f"{block}{norm}.weight", n_embd, mean=1.0)
        for norm in ("attn_q_norm", "attn_k_norm"):
            file.vector(f"{block}{norm}.weight", n_head_dim, mean=1.0)
        attention(file, block, n_embd, n_head_dim, n_head, n_head_kv)
        feed_forward(file, block, n_embd, n_ff)
    return file.finish()


def write_qwen2vl(
    path: Path,
    *,
    seed: int = 0,
    n_layer: int = 2,
    n_embd: int = 64,
    n_head: int = 4,
    n_head_kv: int = 2,
    n_ctx_train: int = 2048,
    vocab: VocabKind | Vocab = "bpe",
    chat_template: str | None = CHATML,
    scale: float = SCALE,
) -> Path:
    """Write a qwen2vl decoder, whose positions have a time, a row and a column, and return `path`."""
    words = make_vocab(vocab)
    n_head_dim = n_embd // n_head
    n_ff = 2 * n_embd
    file = WeightFile(path, "qwen2vl", seed=seed)
    describe(file, words, "tiny qwen2vl", chat_template, n_layer, n_embd, n_ff, n_head, n_head_kv, n_ctx_train)
    file.writer.add_rope_dimension_sections([n_head_dim // 8, n_head_dim * 3 // 16, n_head_dim * 3 // 16, 0])
    file.writer.add_rope_freq_base(10000.0)

    file.both_ends(len(words), n_embd, gain=scale)
    for i in range(n_layer):
        block = f"blk.{i}."
        file.vector(block + "attn_norm.weight", n_embd, mean=1.0)
        attention(file, block, n_embd, n_head_dim, n_head, n_head_kv)
        for name, n in (("attn_q", n_head), ("attn_k", n_head_kv), ("attn_v", n_head_kv)):
            file.vector(f"{block}{name}.bias", n_head_dim * n)
        file.vector(block + "ffn_norm.weight", n_embd, mean=1.0)
        feed_forward(file, block, n_embd, n_ff)
    return file.finish()


def make_vocab(vocab: VocabKind | Vocab) -> Vocab:
    """The vocabulary of that name, or the one given."""
    if isinstance(vocab, Vocab):
        return vocab
    return spm_vocab() if vocab == "spm" else bpe_vocab()


def describe(
    file: WeightFile,
    words: Vocab,
    name: str,
    chat_template: str | Sequence[Mapping[str, str]] | None,
    n_layer: int,
    n_embd: int,
    n_ff: int,
    n_head: int,
    n_head_kv: int | list[int],
    n_ctx_train: int,
) -> None:
    """What every decoder says of itself. `n_head_kv` may differ from layer to layer."""
    writer = file.writer
    writer.add_name(name)
    writer.add_context_length(n_ctx_train)
    writer.add_embedding_length(n_embd)
    writer.add_block_count(n_layer)
    writer.add_feed_forward_length(n_ff)
    writer.add_head_count(n_head)
    writer.add_head_count_kv(n_head_kv)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(words))
    words.add_to(writer)
    if chat_template is not None:
        writer.add_chat_template(chat_template)


def attention(file: WeightFile, block: str, n_embd: int, n_head_dim: int, n_head: int, n_head_kv: int) -> None:
    """The matrices of an attention layer."""
    file.matrix(block + "attn_q.weight", n_embd, n_head_dim * n_head, gain=1.5)
    file.matrix(block + "attn_k.weight", n_embd, n_head_dim * n_head_kv, gain=1.5)
    file.matrix(block + "attn_v.weight", n_embd, n_head_dim * n_head_kv)
    file.matrix(block + "attn_output.weight", n_head_dim * n_head, n_embd)


def feed_forward(file: WeightFile, block: str, n_embd: int, n_ff: int) -> None:
    """The matrices of a gated feed-forward layer."""
    file.matrix(block + "ffn_gate.weight", n_embd, n_ff)
    file.matrix(block + "ffn_up.weight", n_embd, n_ff)
    file.matrix(block + "ffn_down.weight", n_ff, n_embd)
