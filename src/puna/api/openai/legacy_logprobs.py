"""`logprobs` of `/v1/completions`: four arrays that run side by side."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from typing import Any

from puna.api.probs import finite
from puna.service.ports import Tokenizer
from puna.types import TokenProb


class LegacyLogprobs:
    """Feed tokens in order; offsets count characters of the answer's text."""

    def __init__(self, tokenizer: Tokenizer, n_top: int, *, offset: int = 0) -> None:
        self._tokenizer = tokenizer
        self._n_top = n_top
        self._offset = offset
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, probs: Iterable[TokenProb]) -> dict[str, Any]:
        """The arrays for these tokens."""
        tokens: list[str] = []
        values: list[float] = []
        tops: list[dict[str, float]] = []
        offsets: list[int] = []
        for prob in probs:
            piece = self._tokenizer.piece(prob.id)
            tokens.append(token_name(piece))
            values.append(finite(prob.logprob))
            tops.append({token_name(self._tokenizer.piece(token)): finite(value) for token, value in prob.top[: self._n_top]})
            offsets.append(self._offset)
            self._offset += len(self._decoder.decode(piece))
        return {"tokens": tokens, "token_logprobs": values, "top_logprobs": tops, "text_offset": offsets}


def token_name(piece: bytes) -> str:
    """The token as text; as `bytes:` and escapes where it is only part of a character."""
    try:
        return piece.decode()
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)
