"""Projectors of pictures (llava, gemma3, qwen2vl) and sound (ultravox), as small as the engine takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from gguf import GGMLQuantizationType

from tests.tiny.weights import WeightFile

Vision = Literal["mlp", "gemma3", "qwen2vl"]

PATCH = 8
"""Pixels of a patch's side."""
SIDE = 32
"""Pixels of a picture's side, for projectors that take one size."""
IMAGE_TOKENS = {"mlp": (SIDE // PATCH) ** 2, "gemma3": (SIDE // PATCH // 2) ** 2}
STACK = 100
"""Frames of sound that become one vector."""
N_MEL = 16
FRAMES = 3000
"""What 30 seconds of sound are cut into."""


def write_projector(
    path: Path,
    *,
    vision: Vision | None = None,
    audio: bool = False,
    n_text: int = 64,
    n_embd: int = 32,
    n_layer: int = 2,
    seed: int = 7,
) -> Path:
    """Write a projector to vectors of `n_text` floats and return `path`."""
    file = WeightFile(path, "clip", seed=seed)
    writer = file.writer
    writer.add_name("tiny projector")
    writer.add_bool("clip.has_vision_encoder", vision is not None)
    writer.add_bool("clip.has_audio_encoder", audio)
    writer.add_bool("clip.use_gelu", True)
    if vision is not None:
        _describe(
            file, "vision", {"mlp": "mlp", "gemma3": "gemma3", "qwen2vl": "qwen2vl_merger"}[vision], n_embd, n_layer, n_text
        )
        writer.add_uint32("clip.vision.image_size", SIDE)
        writer.add_uint32("clip.vision.patch_size", PATCH)
        writer.add_array("clip.vision.image_mean", [0.5, 0.5, 0.5])
        writer.add_array("clip.vision.image_std", [0.5, 0.5, 0.5])
        _vision(file, vision, n_embd, n_layer, n_text)
    if audio:
        _describe(file, "audio", "ultravox", n_embd, n_layer, n_text)
        writer.add_uint32("clip.audio.num_mel_bins", N_MEL)
        writer.add_uint32("clip.audio.projector.stack_factor", STACK)
        _audio(file, n_embd, n_layer, n_text)
    return file.finish()


def _describe(file: WeightFile, part: str, kind: str, n_embd: int, n_layer: int, n_text: int) -> None:
    writer = file.writer
    writer.add_string(f"clip.{part}.projector_type", kind)
    writer.add_uint32(f"clip.{part}.embedding_length", n_embd)
    writer.add_uint32(f"clip.{part}.feed_forward_length", 2 * n_embd)
    writer.add_uint32(f"clip.{part}.block_count", n_layer)
    writer.add_uint32(f"clip.{part}.projection_dim", n_text)
    writer.add_uint32(f"clip.{part}.attention.head_count", 2)
    writer.add_float32(f"clip.{part}.attention.layer_norm_epsilon", 1e-5)


def _vision(file: WeightFile, kind: Vision, n_embd: int, n_layer: int, n_text: int) -> None:
    patch = (n_embd, 3, PATCH, PATCH)
    file.normal("v.patch_embd.weight", patch, size=(3 * PATCH * PATCH) ** -0.5)
    if kind == "qwen2vl":
        file.normal("v.patch_embd.weight.1", patch, size=(3 * PATCH * PATCH) ** -0.5)
    else:
        file.vector("v.patch_embd.bias", n_embd)
        file.table("v.position_embd.weight", (SIDE // PATCH) ** 2, n_embd)
    _norm(file, "v.post_ln", n_embd)
    _blocks(file, "v", n_embd, n_layer)
    if kind == "gemma3":
        file.writer.add_uint32("clip.vision.projector.scale_factor", 2)
        file.vector("mm.soft_emb_norm.weight", n_embd, mean=1.0)
        file.table("mm.input_projection.weight", n_embd, n_text, size=n_embd**-0.5)
        return
    n_in = 4 * n_embd if kind == "qwen2vl" else n_embd
    _linear(file, "mm.0", n_in, n_in)
    _linear(file, "mm.2", n_in, n_text)


def _audio(file: WeightFile, n_embd: int, n_layer: int, n_text: int) -> None:
    for i, n_in in ((1, N_MEL), (2, n_embd)):
        kernel = np.random.default_rng(i).standard_normal((n_embd, n_in, 3)) * (3 * n_in) ** -0.5
        file.writer.add_tensor(f"a.conv1d.{i}.weight", kernel.astype(np.float16), raw_dtype=GGMLQuantizationType.F16)
        file.normal(f"a.conv1d.{i}.bias", (n_embd, 1), size=0.1)
    file.table("a.position_embd.weight", FRAMES // 2, n_embd)
    _norm(file, "a.post_ln", n_embd)
    _blocks(file, "a", n_embd, n_layer)
    file.vector("mm.a.norm_pre.weight", STACK * n_embd, mean=1.0)
    file.matrix("mm.a.mlp.1.weight", STACK * n_embd, 2 * n_embd)
    file.vector("mm.a.norm_mid.weight", n_embd, mean=1.0)
    file.matrix("mm.a.mlp.2.weight", n_embd, n_text)


def _blocks(file: WeightFile, part: str, n_embd: int, n_layer: int) -> None:
    for i in range(n_layer):
        block = f"{part}.blk.{i}."
        _norm(file, block + "ln1", n_embd)
        _norm(file, block + "ln2", n_embd)
        for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
            file.matrix(f"{block}{name}.weight", n_embd, n_embd)
            if part == "v" or name != "attn_k":
                file.vector(f"{block}{name}.bias", n_embd)
        _linear(file, block + "ffn_up", n_embd, 2 * n_embd)
        _linear(file, block + "ffn_down", 2 * n_embd, n_embd)


def _norm(file: WeightFile, name: str, n: int) -> None:
    file.vector(name + ".weight", n, mean=1.0)
    file.vector(name + ".bias", n)


def _linear(file: WeightFile, name: str, n_in: int, n_out: int) -> None:
    file.matrix(name + ".weight", n_in, n_out)
    file.vector(name + ".bias", n_out)
