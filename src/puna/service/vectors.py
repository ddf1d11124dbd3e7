"""Texts made into vectors: what goes in is checked and tokenised, what comes out is shortened and scaled."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from puna.errors import InputTooLong, InvalidRequest, ServerFault
from puna.service.adapters import Scales
from puna.service.ports import Tokenizer
from puna.service.prompts import LONG_TEXT, MediaPrompt, Prompt, Written, tokenize_now
from puna.service.service import Service
from puna.service.written import read_media_prompt
from puna.types import Media

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


async def read_inputs(
    service: Service, inputs: Sequence[Written], *, limit: int, truncate: bool, param: str
) -> tuple[list[list[int]], list[tuple[Media, ...]]]:
    """The same for inputs that may have pictures and sounds in them, with what stands at each `MEDIA`: nothing at all where
    there are none. These inputs are not truncated."""
    texts = [one for one in inputs if not isinstance(one, MediaPrompt)]
    if len(texts) == len(inputs):
        return await tokenize_inputs(service.tokenizer, texts, limit=limit, truncate=truncate, param=param), []
    tokens: list[list[int]] = []
    media: list[tuple[Media, ...]] = []
    for index, one in enumerate(inputs):
        if isinstance(one, MediaPrompt):
            read = await read_media_prompt(service, one)
            if len(read.tokens) > limit:
                raise InputTooLong(index, len(read.tokens), limit, param=param)
            tokens.append(list(read.tokens))
            media.append(read.media)
        else:
            tokens.append(await asyncio.to_thread(_tokenize, service.tokenizer, one, limit, truncate, index, param))
            media.append(())
    return tokens, media


@dataclass(frozen=True, slots=True)
class Embedded:
    """What inputs became, all of them in one array, since that is computed with much faster than many."""

    rows: Floats
    """Shape: (vectors, numbers)."""
    counts: list[int]
    """How many rows belong to each input: one, or without pooling one a token."""
    n_tokens: int
    """Of all inputs, with all that their media took."""


async def embed(
    service: Service, inputs: Sequence[Sequence[int]], lora: Scales, media: Sequence[Sequence[Media]] = ()
) -> Embedded:
    """The vectors of each input, as the model puts them out with these adapters. `media` is nothing, or what each input has at
    its `MEDIA`.

    Raises `NotSupported`, `Unavailable`, `QueueFull`, or `InvalidRequest` for more numbers than a reply may hold.
    """
    facts = service.check_embeds()
    if facts.pooling == "none":
        n_floats = facts.n_embd_out * sum(map(len, inputs))
        if n_floats > MOST_FLOATS:
            raise InvalidRequest(
                f"the vectors of all tokens would be {n_floats} numbers; {MOST_FLOATS} can be sent", param="input"
            )
    vectors = service.engine.embed(inputs, lora=lora, media=media)
    found = await vectors.all()
    counts = [len(data) // (4 * facts.n_embd_out) for data in found]
    rows = np.frombuffer(b"".join(found), np.float32).reshape(-1, facts.n_embd_out)
    if not np.isfinite(rows).all():
        row = int(np.argmin(np.isfinite(rows).all(axis=1)))
        index = int(np.searchsorted(np.cumsum(counts), row, side="right"))
        raise ServerFault(f"the model gave no finite numbers for input {index}")
    return Embedded(rows, counts, sum(vectors.sizes))


def shape(rows: Floats, *, dimensions: int | None, norm: int) -> Floats:
    """The vectors, cut to their first `dimensions`, each scaled. Shape: as before, or with fewer columns.

    `norm`: -1 leaves them as they are, 0 makes the largest number 32760, any other p makes their p-norm 1.
    """
    cut = rows if dimensions is None else rows[:, :dimensions]
    if norm < 0:
        return cut
    size = _sizes(cut.astype(np.float64), norm)
    size[size == 0] = 1.0  # a vector of zeros stays one
    scaled: Floats = (cut / size[:, None]).astype(np.float32)
    return scaled


def _sizes(rows: npt.NDArray[np.float64], norm: int) -> npt.NDArray[np.float64]:
    """What each row is to be divided by."""
    if norm == 2:
        # of 32-bit numbers: no square overflows 64 bits
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)), np.float64)
    rows = np.abs(rows)
    largest = np.asarray(rows.max(axis=1), np.float64)
    if norm == 0:
        return largest / INT16_RANGE
    # of numbers up to 1, so that no power overflows
    parts = rows / np.where(largest > 0, largest, 1.0)[:, None]
    return np.asarray(largest * (parts**norm).sum(axis=1) ** (1.0 / norm), np.float64)
