"""Decoders whose memory is one state that cannot be cut, of the RWKV family: rwkv6 and rwkv7."""

from __future__ import annotations

from pathlib import Path

from tests.tiny.attention import SCALE, VocabKind, make_vocab
from tests.tiny.vocab import CHATML, Vocab
from tests.tiny.weights import FileType, WeightFile

HEAD = 64
"""Width of a head. The engine's vector code for CPUs reads beyond narrower ones."""

LORA = 8
"""Inner width of the small pairs of matrices that make decays, gates and mixtures depend on the token."""


def write_rwkv6(
    path: Path,
    *,
    seed: int = 0,
    n_layer: int = 2,
    n_embd: int = 128,
    n_ctx_train: int = 2048,
    vocab: VocabKind | Vocab = "spm",
    chat_template: str | None = CHATML,
    scale: float = SCALE,
    file_type: FileType = "f32",
) -> Path:
    """Write an rwkv6 decoder and return `path`."""
    file, n_ff = _begin(path, "rwkv6", seed, n_layer, n_embd, n_ctx_train, vocab, chat_template, scale, file_type)
    file.writer.add_time_mix_extra_dim(LORA)
    file.writer.add_time_decay_extra_dim(LORA)
    for i in range(n_layer):
        block = f"blk.{i}."
        _norms(file, block, n_embd)
        file.matrix(block + "time_mix_w1.weight", n_embd, 5 * LORA)
        file.normal(block + "time_mix_w2.weight", (5, n_embd, LORA), size=LORA**-0.5)
        file.normal(block + "time_mix_lerp_x.weight", (1, 1, n_embd), size=0.5)
        file.normal(block + "time_mix_lerp_fused.weight", (5, 1, 1, n_embd), size=0.5)
        file.normal(block + "time_mix_first.weight", (n_embd // HEAD, HEAD), size=0.5)
        file.vector(block + "time_mix_decay.weight", n_embd, mean=-2.0)
        file.matrix(block + "time_mix_decay_w1.weight", n_embd, LORA)
        file.matrix(block + "time_mix_decay_w2.weight", LORA, n_embd, gain=0.3)
        for part in ("key", "value", "receptance", "gate", "output"):
            file.matrix(f"{block}time_mix_{part}.weight", n_embd, n_embd)
        _channel_mix(file, block, n_embd, n_ff)
        file.normal(block + "channel_mix_lerp_r.weight", (1, 1, n_embd), size=0.5)
        file.matrix(block + "channel_mix_receptance.weight", n_embd, n_embd)
    return file.finish()


def write_rwkv7(
    path: Path,
    *,
    seed: int = 0,
    n_layer: int = 2,
    n_embd: int = 128,
    n_ctx_train: int = 2048,
    vocab: VocabKind | Vocab = "spm",
    chat_template: str | None = CHATML,
    scale: float = SCALE,
    file_type: FileType = "f32",
) -> Path:
    """Write an rwkv7 decoder and return `path`."""
    file, n_ff = _begin(path, "rwkv7", seed, n_layer, n_embd, n_ctx_train, vocab, chat_template, scale, file_type)
    for add in ("decay", "iclr", "value_residual_mix", "gate"):
        getattr(file.writer, f"add_{add}_lora_rank")(LORA)
    for i in range(n_layer):
        block = f"blk.{i}."
        _norms(file, block, n_embd)
        for part in "wav":
            file.vector(f"{block}time_mix_{part}0.weight", n_embd)
        for part in "wavg":
            file.matrix(f"{block}time_mix_{part}1.weight", n_embd, LORA)
            file.matrix(f"{block}time_mix_{part}2.weight", LORA, n_embd)
        file.normal(block + "time_mix_lerp_fused.weight", (6, 1, 1, n_embd), size=0.5)
        file.vector(block + "time_mix_k_k.weight", n_embd, mean=1.0)
        file.vector(block + "time_mix_k_a.weight", n_embd, mean=1.0)
        file.vector(block + "time_mix_r_k.weight", n_embd)
        for part in ("key", "value", "receptance", "output"):
            file.matrix(f"{block}time_mix_{part}.weight", n_embd, n_embd)
        _channel_mix(file, block, n_embd, n_ff)
    return file.finish()


def _begin(
    path: Path,
    arch: str,
    seed: int,
    n_layer: int,
    n_embd: int,
    n_ctx_train: int,
    vocab: VocabKind | Vocab,
    chat_template: str | None,
    scale: float,
    file_type: FileType,
) -> tuple[WeightFile, int]:
    """A file with all but its layers, and the width of their second half."""
    words, n_ff = make_vocab(vocab), 2 * n_embd
    file = WeightFile(path, arch, seed=seed, file_type=file_type)
    writer = file.writer
    writer.add_name(f"tiny {arch}")
    writer.add_context_length(n_ctx_train)
    writer.add_embedding_length(n_embd)
    writer.add_block_count(n_layer)
    writer.add_feed_forward_length(n_ff)
    writer.add_head_count(0)
    writer.add_layer_norm_eps(1e-5)
    writer.add_wkv_head_size(HEAD)
    writer.add_vocab_size(len(words))
    words.add_to(writer)
    if chat_template is not None:
        writer.add_chat_template(chat_template)
    file.table("token_embd.weight", len(words), n_embd)
    _norm(file, "token_embd_norm", n_embd)
    _norm(file, "output_norm", n_embd)
    file.matrix("output.weight", n_embd, len(words), gain=scale)
    return file, n_ff


def _norms(file: WeightFile, block: str, n_embd: int) -> None:
    for norm in ("attn_norm", "attn_norm_2", "time_mix_ln"):
        _norm(file, block + norm, n_embd)


def _norm(file: WeightFile, name: str, n: int) -> None:
    file.vector(name + ".weight", n, mean=1.0)
    file.vector(name + ".bias", n)


def _channel_mix(file: WeightFile, block: str, n_embd: int, n_ff: int) -> None:
    file.normal(block + "channel_mix_lerp_k.weight", (1, 1, n_embd), size=0.5)
    file.matrix(block + "channel_mix_key.weight", n_embd, n_ff)
    file.matrix(block + "channel_mix_value.weight", n_ff, n_embd)
