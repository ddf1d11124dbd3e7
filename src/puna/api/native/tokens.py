"""`/tokenize` and `/detokenize`."""

from __future__ import annotations

import asyncio
from typing import Any

from puna.api.native.schema import DetokenizeRequest, TokenizeRequest
from puna.errors import InvalidRequest
from puna.service.ports import Tokenizer
from puna.service.prompts import LONG_TEXT, Prompt, check_ids, tokenize_mixed


async def tokenize(tokenizer: Tokenizer, body: TokenizeRequest) -> dict[str, Any]:
    """Token ids of `content`, with their pieces if asked for; a piece that is not UTF-8 is a list of bytes."""
    tokens = await tokenize_mixed(
        tokenizer,
        _content(body.content),
        add_special=body.add_special is True,
        parse_special=body.parse_special is not False,
        param="content",
    )
    if not body.with_pieces:
        return {"tokens": tokens}
    return {"tokens": [{"id": token, "piece": _piece(tokenizer.piece(token, special=True))} for token in tokens]}


async def detokenize(tokenizer: Tokenizer, body: DetokenizeRequest) -> dict[str, Any]:
    """The text of the ids."""
    tokens = body.tokens or []
    check_ids(tokenizer, tokens, param="tokens")
    if len(tokens) < LONG_TEXT:
        return {"content": tokenizer.detokenize(tokens)}
    return {"content": await asyncio.to_thread(tokenizer.detokenize, tokens)}


def _content(content: Any) -> Prompt:
    if content is None:
        return []
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        for index, item in enumerate(content):
            if isinstance(item, bool) or not isinstance(item, (int, str)):
                raise InvalidRequest(f"Field 'content.{index}': a token id or a text is expected", param=f"content.{index}")
        return content
    raise InvalidRequest("Field 'content': a text, or a list of texts and token ids, is expected", param="content")


def _piece(piece: bytes) -> str | list[int]:
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return list(piece)
