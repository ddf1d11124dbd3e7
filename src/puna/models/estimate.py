"""How much memory a model will take, from its file's header. Pure."""

from __future__ import annotations

from puna.config import EngineSettings
from puna.gguf import Header

OVERHEAD = 96 << 20
"""A worker process with its libraries and buffers, before any weights."""

BYTES = {"f32": 4.0, "f16": 2.0, "bf16": 2.0, "q8_0": 1.0625, "q5_1": 0.75, "q5_0": 0.6875, "q4_1": 0.625, "q4_0": 0.5625}
"""Bytes an element of the cache takes, by its type."""

FIRST = 512
"""Tokens of a sequence that a context has room for at first; it grows when a longer one comes."""


def needed_bytes(header: Header, engine: EngineSettings) -> int:
    """Weights, the first context and what a process takes by itself. Contexts that grow later are not in it."""
    number = header.metadata.get
    name = header.architecture
    layers, heads = _whole(number(f"{name}.block_count")), _whole(number(f"{name}.attention.head_count"))
    width = _whole(number(f"{name}.embedding_length"))
    heads_kv = _whole(number(f"{name}.attention.head_count_kv")) or heads
    key = _whole(number(f"{name}.attention.key_length")) or (width // heads if heads else 0)
    value = _whole(number(f"{name}.attention.value_length")) or key
    cell = layers * heads_kv * (key * BYTES.get(engine.cache_type_k, 2.0) + value * BYTES.get(engine.cache_type_v, 2.0))
    tokens = (engine.n_slots or 4) * min(FIRST, engine.n_ctx or FIRST)
    return header.needed_bytes + int(cell * tokens) + OVERHEAD


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
