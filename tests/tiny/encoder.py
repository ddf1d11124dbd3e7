"""An encoder: bert, as an embedding model or, with a classifier on top, as a reranker."""

from __future__ import annotations

from pathlib import Path

from gguf import PoolingType

from tests.tiny.vocab import wpm_vocab
from tests.tiny.weights import FileType, WeightFile


def write_bert(
    path: Path,
    *,
    seed: int = 0,
    n_layer: int = 2,
    n_embd: int = 64,
    n_head: int = 4,
    n_ctx_train: int = 512,
    rerank: bool = False,
    file_type: FileType = "f32",
) -> Path:
    """Write a bert encoder with mean pooling, or one that scores pairs of texts, and return `path`."""
    words = wpm_vocab()
    n_ff = 2 * n_embd
    file = WeightFile(path, "bert", seed=seed, file_type=file_type)
    writer = file.writer
    writer.add_name("tiny reranker" if rerank else "tiny bert")
    writer.add_context_length(n_ctx_train)
    writer.add_embedding_length(n_embd)
    writer.add_block_count(n_layer)
    writer.add_feed_forward_length(n_ff)
    writer.add_head_count(n_head)
    writer.add_layer_norm_eps(1e-12)
    writer.add_causal_attention(False)
    writer.add_pooling_type(PoolingType.RANK if rerank else PoolingType.MEAN)
    writer.add_token_type_count(2)
    writer.add_vocab_size(len(words))
    words.add_to(writer)

    file.table("token_embd.weight", len(words), n_embd)
    file.table("token_types.weight", 2, n_embd, size=0.1)
    file.normal("position_embd.weight", (n_ctx_train, n_embd), size=0.1)
    _norm(file, "token_embd_norm", n_embd)
    for i in range(n_layer):
        block = f"blk.{i}."
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            file.matrix(f"{block}{part}.weight", n_embd, n_embd)
            file.vector(f"{block}{part}.bias", n_embd)
        _norm(file, block + "attn_output_norm", n_embd)
        file.matrix(block + "ffn_up.weight", n_embd, n_ff)
        file.vector(block + "ffn_up.bias", n_ff)
        file.matrix(block + "ffn_down.weight", n_ff, n_embd)
        file.vector(block + "ffn_down.bias", n_embd)
        _norm(file, block + "layer_output_norm", n_embd)
    if rerank:
        file.matrix("cls.weight", n_embd, n_embd)
        file.vector("cls.bias", n_embd)
        file.matrix("cls.output.weight", n_embd, 1, gain=4.0)
        file.vector("cls.output.bias", 1)
    return file.finish()


def _norm(file: WeightFile, name: str, n: int) -> None:
    file.vector(name + ".weight", n, mean=1.0)
    file.vector(name + ".bias", n)
