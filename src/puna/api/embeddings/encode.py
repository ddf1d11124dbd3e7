"""Vectors as they appear in replies."""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from typing import Any

import msgspec

from puna.service.vectors import Floats


def openai_reply(vectors: Sequence[Floats], *, base64: bool, model: str, n_tokens: int) -> bytes:
    """OpenAI's shape: one flat vector an input."""
    return msgspec.json.encode(
        {
            "object": "list",
            "data": [_openai_item(index, vector, base64=base64) for index, vector in enumerate(vectors)],
            "model": model,
            "usage": {"prompt_tokens": n_tokens, "total_tokens": n_tokens},
        }
    )


def _openai_item(index: int, vector: Floats, *, base64: bool) -> dict[str, Any]:
    item = {"object": "embedding", "index": index, "embedding": number_list(vector[0], base64=base64)}
    return {**item, "encoding_format": "base64"} if base64 else item


def native_reply(vectors: Sequence[Floats], *, base64: bool) -> bytes:
    """llama.cpp's shape: a list of vectors an input, of which there is one unless every token has its own."""
    return msgspec.json.encode(
        [
            {"index": index, "embedding": [number_list(row, base64=base64) for row in vector]}
            for index, vector in enumerate(vectors)
        ]
    )


def number_list(vector: Floats, *, base64: bool) -> Any:
    """Numbers as a list, or as base64 of little-endian 32-bit floats."""
    if base64:
        return binascii.b2a_base64(vector.astype("<f4").tobytes(), newline=False).decode("ascii")
    return vector.tolist()
