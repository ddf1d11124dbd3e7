"""Prompts with pictures and sounds in them, as people write them, made into what an engine takes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from puna.chat import MediaPart
from puna.mediafiles.loader import Wanted
from puna.service.media import MARKER, as_wanted
from puna.service.prompts import LONG_TEXT, MediaPrompt, Written, at_least_one, tokenize_around, tokenize_prompt
from puna.service.service import Service
from puna.types import Media


class ReadPrompt(msgspec.Struct, frozen=True):
    """A prompt that is ready to be evaluated."""

    tokens: tuple[int, ...]
    """At least one; `MEDIA` where a picture or a sound stands."""
    media: tuple[Media, ...] = ()


async def read_prompt(service: Service, written: Written, *, param: str) -> ReadPrompt:
    """One prompt. Raises `InvalidRequest` or `NotSupported` that names the field."""
    if not isinstance(written, MediaPrompt):
        return ReadPrompt(await tokenize_prompt(service.tokenizer, written, param=param))
    read = await read_media_prompt(service, written)
    return ReadPrompt(at_least_one(service.tokenizer, list(read.tokens), param=param), read.media)


async def read_media_prompt(service: Service, written: MediaPrompt) -> ReadPrompt:
    """The same for one that has media in it, its tokens as they are."""
    wanted: Sequence[Wanted] = [as_wanted(part) for part in written.media]
    found = await service.media.load(wanted, service.facts.media)
    counts = [len(one) for one in found]

    def work() -> list[int]:
        return tokenize_around(service.tokenizer, written.pieces, counts=counts)

    long = sum(len(piece) for piece in written.pieces if isinstance(piece, str)) >= LONG_TEXT
    tokens = await asyncio.to_thread(work) if long else work()
    return ReadPrompt(tuple(tokens), tuple(media for one in found for media in one))


def as_text(written: MediaPrompt) -> str:
    """The prompt as it is shown."""
    return "".join(MARKER if isinstance(piece, MediaPart) else piece for piece in written.pieces)
