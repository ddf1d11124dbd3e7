"""Prompts as people write them, made into token ids.

A prompt is a text, a list of token ids, or a list that mixes both; several prompts are a list of those.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from puna.chat import MediaPart
from puna.errors import InvalidRequest
from puna.service.media import split_at_markers
from puna.service.ports import Tokenizer
from puna.types import MEDIA

LONG_TEXT = 16_384
"""Characters from which a text is tokenised on a thread, so that other requests do not wait for it."""

Prompt = str | Sequence[int | str]


class MediaPrompt(msgspec.Struct, frozen=True):
    """Texts, and pictures and sounds between them."""

    pieces: tuple[str | MediaPart, ...]

    @property
    def media(self) -> tuple[MediaPart, ...]:
        return tuple(piece for piece in self.pieces if isinstance(piece, MediaPart))


Written = Prompt | MediaPrompt
"""A prompt as it is written."""


def split_prompts(value: object, *, param: str = "prompt") -> list[Written]:
    """The prompts in a decoded JSON value. Raises `InvalidRequest` that names the item at fault.

    A list that holds a number is one prompt; a list of texts, lists or objects is one prompt an item.
    """
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [_from_object(value, param)]
    if not isinstance(value, list):
        raise InvalidRequest(f"Field '{param}': a text, or a list of texts and token ids, is expected", param=param)
    if not value:
        raise InvalidRequest(f"Field '{param}': the list is empty", param=param)
    if any(isinstance(item, int) for item in value):
        return [_mixed(value, param)]
    return [_one_of_many(item, f"{param}.{index}") for index, item in enumerate(value)]


def _one_of_many(item: object, param: str) -> Written:
    if isinstance(item, str):
        return item
    if isinstance(item, dict):
        return _from_object(item, param)
    if isinstance(item, list) and item:
        return _mixed(item, param)
    raise InvalidRequest(f"Field '{param}': a text, or a list of texts and token ids, is expected", param=param)


def _mixed(items: list[object], param: str) -> list[int | str]:
    mixed: list[int | str] = []
    for index, item in enumerate(items):
        if isinstance(item, bool) or not isinstance(item, (int, str)):
            at = f"{param}.{index}"
            raise InvalidRequest(f"Field '{at}': a token id or a text is expected", param=at)
        mixed.append(item)
    return mixed


def _from_object(value: dict[str, object], param: str) -> str | MediaPrompt:
    text, media = value.get("prompt_string"), value.get("multimodal_data")
    if not isinstance(text, str):
        at = f"{param}.prompt_string"
        raise InvalidRequest(f"Field '{at}': a text is expected", param=at)
    if not media:
        return text
    at = f"{param}.multimodal_data"
    if not isinstance(media, list):
        raise InvalidRequest(f"Field '{at}': a list of texts in base64 is expected", param=at)
    texts = split_at_markers(text, len(media), field=f"{param}.prompt_string")
    pieces: list[str | MediaPart] = [texts[0]]
    for index, (source, after) in enumerate(zip(media, texts[1:], strict=True)):
        here = f"{at}.{index}"
        if not isinstance(source, str):
            raise InvalidRequest(f"Field '{here}': a text in base64 is expected", param=here)
        pieces += [MediaPart("any", source, here, here), after]
    return MediaPrompt(tuple(piece for piece in pieces if piece != ""))


def check_ids(tokenizer: Tokenizer, ids: Sequence[int], *, param: str) -> None:
    """Raise `InvalidRequest` unless every id is in the vocabulary."""
    n_vocab = tokenizer.n_tokens
    for index, token in enumerate(ids):
        if not 0 <= token < n_vocab:
            raise outside(token, n_vocab, f"{param}.{index}")


def outside(token: int, n_vocab: int, param: str) -> InvalidRequest:
    """The error for an id that the vocabulary does not have."""
    return InvalidRequest(f"Field '{param}': token id {token} is outside the vocabulary (0 to {n_vocab - 1})", param=param)


async def tokenize_text(tokenizer: Tokenizer, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
    """Token ids of a text of any length, without blocking the event loop for long."""
    if len(text) < LONG_TEXT:
        return tokenizer.tokenize(text, add_special=add_special, parse_special=parse_special)
    return await asyncio.to_thread(tokenizer.tokenize, text, add_special=add_special, parse_special=parse_special)


async def tokenize_mixed(
    tokenizer: Tokenizer, prompt: Prompt, *, add_special: bool, parse_special: bool, param: str
) -> list[int]:
    """Token ids of one prompt. Only a text at its very start gets what the model wants around a text."""
    size = len(prompt)
    if not isinstance(prompt, str):
        size += sum(len(item) for item in prompt if isinstance(item, str))
    if size < LONG_TEXT:
        return tokenize_now(tokenizer, prompt, add_special=add_special, parse_special=parse_special, param=param)
    return await asyncio.to_thread(
        tokenize_now, tokenizer, prompt, add_special=add_special, parse_special=parse_special, param=param
    )


def tokenize_now(tokenizer: Tokenizer, prompt: Prompt, *, add_special: bool, parse_special: bool, param: str) -> list[int]:
    """The same at once, for callers that are on a thread of their own or know that the texts are short."""
    if isinstance(prompt, str):
        return tokenizer.tokenize(prompt, add_special=add_special, parse_special=parse_special)
    tokens: list[int] = []
    n_vocab = tokenizer.n_tokens
    for index, item in enumerate(prompt):
        if isinstance(item, str):
            tokens += tokenizer.tokenize(item, add_special=add_special and index == 0, parse_special=parse_special)
        elif 0 <= item < n_vocab:
            tokens.append(item)
        else:
            raise outside(item, n_vocab, f"{param}.{index}")
    return tokens


def tokenize_around(tokenizer: Tokenizer, pieces: Sequence[str | MediaPart], *, counts: Sequence[int]) -> list[int]:
    """Token ids of texts with `MEDIA` between them, as often as each picture or sound counts; around all of it what the model
    wants around a text."""
    around = tokenizer.tokenize("", add_special=True, parse_special=False)
    n_before = int(tokenizer.add_bos and around[:1] == [tokenizer.bos])
    tokens = around[:n_before]
    rest = iter(counts)
    for piece in pieces:
        if isinstance(piece, MediaPart):
            tokens += [MEDIA] * next(rest)
        else:
            tokens += tokenizer.tokenize(piece, add_special=False, parse_special=True)
    return tokens + around[n_before:]


async def tokenize_prompt(tokenizer: Tokenizer, prompt: Prompt, *, param: str) -> tuple[int, ...]:
    """The ids to evaluate: at least one, and BOS at most once at the start. Raises `InvalidRequest`."""
    tokens = await tokenize_mixed(tokenizer, prompt, add_special=True, parse_special=True, param=param)
    return at_least_one(tokenizer, tokens, param=param)


def at_least_one(tokenizer: Tokenizer, tokens: list[int], *, param: str) -> tuple[int, ...]:
    """The same ids with a doubled BOS made one; for none at all, what the model starts a text with."""
    bos = tokenizer.bos
    if bos >= 0 and tokens[:2] == [bos, bos]:
        return tuple(tokens[1:])
    if tokens:
        return tuple(tokens)
    start = bos if bos >= 0 else tokenizer.eos
    if start < 0:
        raise InvalidRequest(f"Field '{param}': the prompt is empty, and this model has no token to begin with", param=param)
    return (start,)


def token_of(tokenizer: Tokenizer, text: str) -> int | None:
    """The id of the one token that `text` is, control tokens included; None for any other number of tokens."""
    tokens = tokenizer.tokenize(text, add_special=False, parse_special=True)
    return tokens[0] if len(tokens) == 1 else None
