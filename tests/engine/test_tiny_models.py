"""The tiny models load, decode, are the same for a seed, and have logits with a clear best token."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import tiny

# The engine can end its process on a bad file, so each model is loaded in a process of its own.
PROBE = """
import ctypes, json, sys
import llama_cpp as C

path, encoder = sys.argv[1], sys.argv[2] == "encoder"
C.llama_backend_init()
model = C.llama_model_load_from_file(path.encode(), C.llama_model_default_params())
assert model, "did not load"
params = C.llama_context_default_params()
params.n_ctx, params.n_batch, params.n_ubatch, params.n_threads, params.n_threads_batch = 128, 128, 128, 1, 1
params.embeddings = encoder
context = C.llama_init_from_model(model, params)
assert context, "no context"
vocab = C.llama_model_get_vocab(model)

def tokenize(text, special=False):
    raw = text.encode()
    ids = (C.llama_token * (len(raw) + 8))()
    return list(ids[:C.llama_tokenize(vocab, raw, len(raw), ids, len(ids), True, special)])

def piece(token):
    room = ctypes.create_string_buffer(64)
    n = C.llama_token_to_piece(vocab, token, room, 64, 0, True)
    return room.raw[:n]

text = "the world said hello" if encoder else "the world said hello to \\u6f22\\U0001f600!"
ids = tokenize(text)
array = (C.llama_token * len(ids))(*ids)
batch = C.llama_batch_get_one(array, len(ids))
assert (C.llama_encode if encoder else C.llama_decode)(context, batch) == 0
out = {"ids": ids, "text": b"".join(map(piece, ids)).decode("utf-8", "replace"), "n_vocab": C.llama_vocab_n_tokens(vocab)}
out["chat"] = tokenize("<|im_start|>user", special=True)
if encoder:
    pooled = C.llama_get_embeddings_seq(context, 0)
    out["embedding"] = list(pooled[:1 if C.llama_pooling_type(context) == 4 else C.llama_model_n_embd(model)])
else:
    logits = C.llama_get_logits_ith(context, -1)
    values = sorted(((logits[i], i) for i in range(out["n_vocab"])), reverse=True)
    out["best"], out["gap"], out["spread"] = values[0][1], values[0][0] - values[1][0], values[0][0] - values[-1][0]
    out["can_shift"] = bool(C.llama_memory_can_shift(C.llama_get_memory(context)))
    out["recurrent"] = bool(C.llama_model_is_recurrent(model))
    out["n_swa"] = C.llama_model_n_swa(model)
    out["template"] = bool(C.llama_model_chat_template(model, None))
print(json.dumps(out))
"""


def probe(path: Path, kind: str = "decoder") -> dict[str, Any]:
    """What the engine makes of a model."""
    command = [sys.executable, "-c", PROBE, str(path), kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    result: dict[str, Any] = json.loads(done.stdout)
    return result


DECODERS = ["tiny_llama", "tiny_llama_bpe", "tiny_gemma3", "tiny_mamba", "tiny_rwkv6", "tiny_rwkv7"]
DECODERS += ["tiny_jamba", "tiny_granite_hybrid", "tiny_lfm2"]


@pytest.mark.parametrize("fixture", DECODERS)
def test_a_decoder_loads_and_decodes_with_a_clear_best_token(fixture: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(fixture)
    seen = probe(path)
    assert path.stat().st_size < 5_000_000
    assert "the world said hello to 漢😀!" in seen["text"]
    assert seen["gap"] > 0.05 and 10 < seen["spread"] < 60
    assert seen["template"]


def test_decoders_have_the_memory_they_stand_for(tiny_llama: Path, tiny_gemma3: Path, tiny_mamba: Path) -> None:
    assert probe(tiny_gemma3)["n_swa"] == 32
    assert probe(tiny_mamba)["recurrent"]
    plain = probe(tiny_llama)
    assert plain["n_swa"] == 0 and not plain["recurrent"]


def test_vocabularies_know_their_control_tokens(tiny_llama: Path, tiny_llama_bpe: Path) -> None:
    spm, bpe = tiny.spm_vocab(), tiny.bpe_vocab()
    seen = probe(tiny_llama)
    assert seen["n_vocab"] == len(spm)
    assert seen["ids"][0] == spm.special["bos"]
    assert spm.id("<|im_start|>") in seen["chat"]
    seen = probe(tiny_llama_bpe)
    assert seen["n_vocab"] == len(bpe)
    assert seen["ids"][0] != bpe.special["bos"]
    assert seen["chat"][0] == bpe.id("<|im_start|>")
    assert len(seen["ids"]) < 20, "merges are used"


@pytest.mark.parametrize(
    "write", [tiny.write_llama, tiny.write_gemma3, tiny.write_mamba, tiny.write_jamba, tiny.write_bert, tiny.write_lora]
)
def test_a_seed_decides_every_byte(write: Callable[..., Path], tmp_path: Path) -> None:
    files = [write(tmp_path / f"{i}.gguf", seed=seed).read_bytes() for i, seed in enumerate((1, 1, 2))]
    assert files[0] == files[1] != files[2]


def test_other_shapes_load(tmp_path: Path) -> None:
    path = tiny.write_llama(tmp_path / "m.gguf", n_layer=1, n_embd=32, n_head=2, n_head_kv=1, file_type="f16", chat_template=None)
    assert not probe(path)["template"]


def test_encoders_give_finite_numbers(tiny_bert: Path, tiny_reranker: Path) -> None:
    vector = probe(tiny_bert, "encoder")["embedding"]
    assert len(vector) == 64 and all(abs(x) < 100 for x in vector) and len(set(vector)) > 32
    (score,) = probe(tiny_reranker, "encoder")["embedding"]
    assert abs(score) < 100
