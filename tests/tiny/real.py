"""Random models over vocabularies that real models have, taken from files that hold a vocabulary alone."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

ARCHITECTURE = "internlm2"
"""Llama's tensors under a name that none of those files has: what they say of their own architectures is in nobody's way."""
HEAD = struct.Struct("<4sIQQ")
TOKENS = b"tokenizer.ggml.tokens"
LIST = struct.Struct("<IIQ")
ALIGNMENT = 32
F32, F16 = 0, 1
UINT32, FLOAT32, STRING = 4, 6, 8


def write_over(path: Path, vocabulary: Path, *, seed: int = 0, n_embd: int = 32, n_ctx_train: int = 8192) -> Path:
    """Write a decoder of one layer with all of the metadata in the file `vocabulary`, and return `path`.

    Its large tables are f16.
    """
    magic, version, n_tensors, n_entries = HEAD.unpack_from(given := vocabulary.read_bytes())
    assert magic == b"GGUF" and not n_tensors
    _, _, n_vocab = LIST.unpack_from(given, given.index(TOKENS) + len(TOKENS))
    first = HEAD.size + len(_entry("general.architecture", STRING, b""))
    (size,) = struct.unpack_from("<Q", given, first)
    kept = given[first + 8 + size :]
    said = {"context_length": n_ctx_train, "embedding_length": n_embd, "block_count": 1, "feed_forward_length": 2 * n_embd}
    said |= {"attention.head_count": 2, "attention.head_count_kv": 1, "vocab_size": n_vocab}
    own = [_text("general.architecture", ARCHITECTURE)]
    own += [_entry(f"{ARCHITECTURE}.{key}", UINT32, struct.pack("<I", value)) for key, value in said.items()]
    own.append(_entry(f"{ARCHITECTURE}.attention.layer_norm_rms_epsilon", FLOAT32, struct.pack("<f", 1e-5)))
    tensors = _tensors(np.random.default_rng(seed), n_vocab, n_embd)
    infos = b""
    chunks: list[bytes] = []
    at = 0
    for name, values in tensors.items():
        kind = F16 if values.dtype == np.float16 else F32
        shape = values.shape[::-1]
        infos += _string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, at)
        data = values.tobytes()
        chunks.append(data + bytes(-len(data) % ALIGNMENT))
        at += len(chunks[-1])
    start = b"".join([HEAD.pack(magic, version, len(tensors), n_entries - 1 + len(own)), *own, kept, infos])
    with path.open("wb") as file:
        file.writelines([start, bytes(-len(start) % ALIGNMENT), *chunks])
    return path


def _tensors(random: np.random.Generator, n_vocab: int, n: int) -> dict[str, NDArray[np.float32] | NDArray[np.float16]]:
    def matrix(n_out: int, n_in: int, gain: float = 1.0) -> NDArray[np.float32]:
        return random.standard_normal((n_out, n_in), dtype=np.float32) * np.float32(gain / n_in**0.5)

    ones = np.ones(n, np.float32)
    return {
        "token_embd.weight": matrix(n_vocab, n, n**0.5).astype(np.float16),
        "output_norm.weight": ones,
        "output.weight": matrix(n_vocab, n, 4.0).astype(np.float16),
        "blk.0.attn_norm.weight": ones,
        "blk.0.attn_q.weight": matrix(n, n),
        "blk.0.attn_k.weight": matrix(n // 2, n),
        "blk.0.attn_v.weight": matrix(n // 2, n),
        "blk.0.attn_output.weight": matrix(n, n),
        "blk.0.ffn_norm.weight": ones,
        "blk.0.ffn_gate.weight": matrix(2 * n, n),
        "blk.0.ffn_up.weight": matrix(2 * n, n),
        "blk.0.ffn_down.weight": matrix(n, 2 * n),
    }


def _text(key: str, value: str) -> bytes:
    return _entry(key, STRING, _string(value))


def _entry(key: str, kind: int, value: bytes) -> bytes:
    return _string(key) + struct.pack("<I", kind) + value


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data
