"""Texts made into vectors: what goes in is checked and tokenised, what comes out is shortened and scaled."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from puna.errors import InputTooLong, InvalidRequest, ServerFault
from puna.service.adapters import Scales
from puna.service.ports import Tokenizer
from puna.service.prompts import LONG_TEXT, Prompt, tokenize_now
from puna.service.service import Service

Floats = npt.NDArray[np.float32]

INT16_RANGE = 32760.0
"""What the largest number becomes with a norm of 0."""

MOST_FLOATS = 1 << 26
"""Most numbers in a reply: without pooling there is a vector for each token."""


async def tokenize_inputs(
    tokenizer: Tokenizer, inputs: Sequence[Prompt], *, limit: int, truncate: bool, param: str
) -> list[list[int]]:
    """Token ids of each input, at least one. Raises `InvalidRequest` that names the first input at fault.

    With `truncate` an input of more than `limit` tokens loses those before its last one, which may be a separator that
    the model wants at the end; without, it is an error.
    """

    def work() -> list[list[int]]:
        return [_tokenize(tokenizer, one, limit, truncate, index, param) for index, one in enumerate(inputs)]

    # many short texts take as long as a long one
    n_characters = sum(len(one) for one in inputs)
    return work() if n_characters < LONG_TEXT else await asyncio.to_thread(work)


def _tokenize(tokenizer: Tokenizer, one: Prompt, limit: int, truncate: bool, index: int, param: str) -> list[int]:
    name = f"{param}.{index}"
    if not one:
        raise InvalidRequest(f"Field '{name}': the input is empty", param=name)
    tokens = tokenize_now(tokenizer, one, add_special=True, parse_special=True, param=name)
    if not tokens:
        raise InvalidRequest(f"Field '{name}': the input has no tokens", param=name)
    if len(tokens) <= limit:
        return tokens
    if not truncate:
        raise InputTooLong(index, len(tokens), limit, param=param)
    return [*tokens[: limit - 1], tokens[-1]]


async def embed(service: Service, inputs: Sequence[Sequence[int]], lora: Scales) -> list[Floats]:
    """The vectors of each input, as the model puts them out with these adapters.

    Shapes: (1, width), or (tokens, width) without pooling.

    Raises `NotSupported`, `Unavailable`, `QueueFull`, or `InvalidRequest` for more numbers than a reply may hold.
    """
    facts = service.check_embeds()
    if facts.pooling == "none":
        n_floats = facts.n_embd_out * sum(map(len, inputs))
        if n_floats > MOST_FLOATS:
            raise InvalidRequest(
                f"the vectors of all tokens would be {n_floats} numbers; {MOST_FLOATS} can be sent", param="input"
            )
    found = await service.engine.embed(inputs, lora=lora).all()
    vectors = [np.frombuffer(data, np.float32).reshape(-1, facts.n_embd_out) for data in found]
    for index, vector in enumerate(vectors):
        if not np.isfinite(vector).all():
            raise ServerFault(f"the model gave no finite numbers for input {index}")
    return vectors


def shape(vector: Floats, *, dimensions: int | None, norm: int) -> Floats:
    """The vectors, cut to their first `dimensions`, each scaled. Shape: as before, or with fewer columns.

    `norm`: -1 leaves them as they are, 0 makes the largest number 32760, any other p makes their p-norm 1.
    """
    cut = vector if dimensions is None else vector[:, :dimensions]
    if norm < 0:
        return cut
    wide = np.abs(cut.astype(np.float64))
    largest = wide.max(axis=1, keepdims=True)
    safe = np.where(largest > 0, largest, 1.0)  # a vector of zeros stays one
    if norm == 0:
        size = safe / INT16_RANGE
    else:
        # of numbers up to 1, so that no power overflows
        size = safe * ((wide / safe) ** norm).sum(axis=1, keepdims=True) ** (1.0 / norm)
        size = np.where(largest > 0, size, 1.0)
    return (cut / size).astype(np.float32)
