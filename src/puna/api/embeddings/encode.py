"""Vectors as they appear in replies."""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from itertools import islice
from typing import Any

import msgspec

from puna.service.vectors import Floats


def openai_reply(rows: Floats, *, base64: bool, model: str, n_tokens: int) -> bytes:
    """OpenAI's shape: one flat vector an input."""
    extra = {"encoding_format": "base64"} if base64 else {}
    return msgspec.json.encode(
        {
            "object": "list",
            "data": [
                {"object": "embedding", "index": index, "embedding": vector, **extra}
                for index, vector in enumerate(_vectors(rows, base64=base64))
            ],
            "model": model,
            "usage": {"prompt_tokens": n_tokens, "total_tokens": n_tokens},
        }
    )


def native_reply(rows: Floats, counts: Sequence[int], *, base64: bool) -> bytes:
    """llama.cpp's shape: a list of vectors an input, of which there is one unless every token has its own."""
    vectors = iter(_vectors(rows, base64=base64))
    return msgspec.json.encode(
        [{"index": index, "embedding": list(islice(vectors, count))} for index, count in enumerate(counts)]
    )


def _vectors(rows: Floats, *, base64: bool) -> list[Any]:
    """Each row's numbers as a list, or as base64 of little-endian 32-bit floats."""
    if not base64:
        numbers: list[Any] = rows.tolist()
        return numbers
    data, step = rows.astype("<f4").tobytes(), 4 * rows.shape[1]
    return [binascii.b2a_base64(data[at : at + step], newline=False).decode("ascii") for at in range(0, len(data), step)]
