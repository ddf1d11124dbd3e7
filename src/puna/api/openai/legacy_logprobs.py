"""`logprobs` of `/v1/completions`: four arrays that run side by side."""

from __future__ import annotations

import codecs
import math
from collections.abc import Iterable, Sequence
from typing import Any

from puna.api.probs import finite
from puna.service.ports import Tokenizer
from puna.types import TokenProb


class LegacyLogprobs:
    """Feed tokens in order, those of an echoed prompt first; offsets count characters of the choice's text."""

    def __init__(self, tokenizer: Tokenizer, n_top: int, *, post: bool = False) -> None:
        """`post`: the values of fed tokens are probabilities, of which the arrays show the logarithms."""
        self._tokenizer = tokenizer
        self._n_top = n_top
        self._post = post
        self._offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def echo(self, tokens: Sequence[int], text: str, probs: Sequence[TokenProb]) -> dict[str, Any]:
        """The arrays for a prompt that is shown as `text`; `probs` are those of its second and further tokens."""
        pieces = self._shown(tokens, text)
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        offsets: list[int] = []
        at = 0
        for piece in pieces:
            offsets.append(min(at, len(text)))
            at += len(decoder.decode(piece))
        self._offset = len(text)
        return {
            "tokens": [token_name(piece) for piece in pieces],
            "token_logprobs": [None, *(finite(prob.logprob) for prob in probs)],
            "top_logprobs": [None, *(self._top(prob, post=False) for prob in probs)],
            "text_offset": offsets,
        }

    def feed(self, probs: Iterable[TokenProb]) -> dict[str, Any]:
        """The arrays for these tokens of the answer."""
        tokens: list[str] = []
        values: list[float] = []
        tops: list[dict[str, float]] = []
        offsets: list[int] = []
        for prob in probs:
            piece = self._tokenizer.piece(prob.id)
            tokens.append(token_name(piece))
            values.append(_value(prob.logprob, post=self._post))
            tops.append(self._top(prob, post=self._post))
            offsets.append(self._offset)
            self._offset += len(self._decoder.decode(piece))
        return {"tokens": tokens, "token_logprobs": values, "top_logprobs": tops, "text_offset": offsets}

    def _top(self, prob: TokenProb, *, post: bool) -> dict[str, float]:
        rivals: dict[str, float] = {}
        for token, value in prob.top[: self._n_top]:
            # Of tokens with the same text the likelier one, which comes first.
            rivals.setdefault(token_name(self._tokenizer.piece(token, special=True)), _value(value, post=post))
        return rivals

    def _shown(self, tokens: Sequence[int], text: str) -> list[bytes]:
        """The prompt's pieces, without what the vocabulary put before the text by itself: BOS, and a blank."""
        tokenizer = self._tokenizer
        pieces = [tokenizer.piece(token, special=True) for token in tokens]
        if tokens[0] == tokenizer.bos and not text.startswith(tokenizer.text(tokenizer.bos)):
            pieces[0] = b""
        if b"".join(pieces).decode("utf-8", "replace") == " " + text:
            first = next(index for index, piece in enumerate(pieces) if piece)
            pieces[first] = pieces[first][1:]
        return pieces


def _value(value: float, *, post: bool) -> float:
    if post:
        value = math.log(value) if value > 0 else -math.inf
    return finite(value)


def token_name(piece: bytes) -> str:
    """The token as text; as `bytes:` and escapes where it is only part of a character."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)
