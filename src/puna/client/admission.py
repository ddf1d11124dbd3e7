"""Whether a generation may come in: pure checks, so that a refusal is known before an answer begins."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from puna.errors import ContextExceeded, InputTooLong, InvalidRequest, NotSupported, TooLarge
from puna.types import MEDIA, Generation, Media, ModelFacts

KINDS = {"image": "pictures", "audio": "sound"}

MOST_MEDIA = 192 << 20
"""Bytes of decoded media that one request may bring: they travel to the worker in one frame."""

MOST_HELD = 1 << 30
"""Bytes of decoded media that all requests together may hold while they wait and run."""

LONGEST_WAIT = 60
"""Seconds that nobody is told to stay away for longer."""


def check(generation: Generation, facts: ModelFacts) -> None:
    """Raise InvalidRequest or ContextExceeded when the model can never do this."""
    prompt = generation.prompt
    if not prompt:
        raise InvalidRequest("the prompt has no tokens", param="prompt")
    if not _known(prompt, generation.media, facts):
        raise InvalidRequest(f"the prompt has a token id outside the vocabulary (0 to {facts.n_vocab - 1})", param="prompt")
    check_adapters(generation.lora, facts)
    check_media(prompt, generation.media, facts, param="prompt")
    if generation.media and generation.prompt_probs:
        raise InvalidRequest("a prompt with pictures or sound has no probabilities of its own", param="echo")
    room = facts.n_ctx - len(prompt)
    # A prompt that is only read needs no room for an answer.
    if room < 0 or (room == 0 and generation.max_tokens != 0):
        raise ContextExceeded(len(prompt), facts.n_ctx)


def check_adapters(lora: Sequence[tuple[int, float]], facts: ModelFacts) -> None:
    """Raise InvalidRequest for an adapter that is not there."""
    if any(not 0 <= id < len(facts.adapters) for id, _ in lora):
        raise InvalidRequest(f"the request names an adapter that is not loaded; there are {len(facts.adapters)}", param="lora")


def check_media(prompt: Sequence[int], media: Sequence[Media], facts: ModelFacts, *, param: str) -> None:
    """Raise InvalidRequest for media that are not what they say or not as many as stand in the prompt, TooLarge
    for too much of them, NotSupported for a kind that the model does not take."""
    n_places = sum(token == MEDIA for token in prompt)
    if n_places != len(media):
        raise InvalidRequest(f"the prompt has {n_places} places for pictures and sounds, and {len(media)} came", param=param)
    if sum(len(one.data) for one in media) > MOST_MEDIA:
        raise TooLarge(f"the pictures and sounds take more than {MOST_MEDIA >> 20} MiB together, decoded", param=param)
    for one in media:
        if facts.media is None:
            raise NotSupported(f"{facts.description} takes text only; start the server with --mmproj FILE for {KINDS[one.kind]}")
        if not (facts.media.vision if one.kind == "image" else facts.media.audio):
            other = KINDS["audio" if one.kind == "image" else "image"]
            raise NotSupported(f"{facts.description} takes {other}, but no {KINDS[one.kind]}")
        if one.kind == "image" and (min(one.width, one.height) < 1 or len(one.data) != 3 * one.width * one.height):
            size = f"{one.width} x {one.height}"
            raise InvalidRequest(f"a picture of {size} pixels does not have {len(one.data)} bytes", param=param)
        if one.kind == "audio" and (not one.data or len(one.data) % 4):
            raise InvalidRequest(f"a sound does not have {len(one.data)} bytes", param=param)


def media_fits(new: int, held: Iterable[int]) -> bool:
    """Whether a request with so many bytes of media may come in beside those that are there."""
    return new == 0 or (before := sum(held)) == 0 or before + new <= MOST_HELD


def check_inputs(
    inputs: Sequence[Sequence[int]],
    lora: Sequence[tuple[int, float]],
    facts: ModelFacts,
    media: Sequence[Sequence[Media]] = (),
) -> None:
    """Raise InvalidRequest, NotSupported or InputTooLong, with the number of the input at fault, when the model can never do
    this."""
    check_adapters(lora, facts)
    if media and len(media) != len(inputs):
        raise InvalidRequest(f"there are {len(inputs)} inputs, and media for {len(media)}", param="input")
    for index, tokens in enumerate(inputs):
        if not tokens:
            raise InvalidRequest(f"input {index} has no tokens", param="input")
        own = media[index] if media else ()
        if not _known(tokens, own, facts):
            raise InvalidRequest(f"input {index} has a token id outside the vocabulary (0 to {facts.n_vocab - 1})", param="input")
        check_media(tokens, own, facts, param=f"input.{index}")
        if own and not (facts.media is not None and facts.media.pooled):
            raise NotSupported(f"{facts.description} embeds text only: its vectors are made of all tokens at once")
        if len(tokens) > facts.n_ctx_pooled:
            raise InputTooLong(index, len(tokens), facts.n_ctx_pooled, param="input")


def _known(tokens: Sequence[int], media: Sequence[Media], facts: ModelFacts) -> bool:
    """Whether every token is in the vocabulary, or stands for one of the media."""
    return min(tokens) >= (MEDIA if media else 0) and max(tokens) < facts.n_vocab


def retry_after(mean: float, n_slots: int) -> int:
    """Return the whole seconds until a place is free, if answers take `mean` seconds each."""
    return min(LONGEST_WAIT, max(1, math.ceil(mean / max(1, n_slots))))
