"""A vocabulary in which some control tokens are text."""

from __future__ import annotations

from collections.abc import Sequence

from puna.service.ports import Tokenizer
from puna.types import FimTokens


class PreservingTokenizer:
    """The same vocabulary, except that `preserved` control tokens stand for their own texts."""

    def __init__(self, tokenizer: Tokenizer, preserved: Sequence[int]) -> None:
        self._tokenizer = tokenizer
        self._preserved = frozenset(preserved)

    @property
    def n_tokens(self) -> int:
        return self._tokenizer.n_tokens

    @property
    def bos(self) -> int:
        return self._tokenizer.bos

    @property
    def eos(self) -> int:
        return self._tokenizer.eos

    @property
    def add_bos(self) -> bool:
        return self._tokenizer.add_bos

    @property
    def fim(self) -> FimTokens:
        return self._tokenizer.fim

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        return self._tokenizer.tokenize(text, add_special=add_special, parse_special=parse_special)

    def piece(self, token: int, *, special: bool = False) -> bytes:
        return self._tokenizer.piece(token, special=special or token in self._preserved)

    def detokenize(self, tokens: Sequence[int]) -> str:
        return self._tokenizer.detokenize(tokens)

    def is_eog(self, token: int) -> bool:
        return self._tokenizer.is_eog(token)

    def text(self, token: int) -> str:
        return self._tokenizer.text(token)

    def special_texts(self) -> list[str]:
        return self._tokenizer.special_texts()

    def added_texts(self) -> list[str]:
        return self._tokenizer.added_texts()


def preserving(tokenizer: Tokenizer, preserved: Sequence[int]) -> Tokenizer:
    """The vocabulary for a request that wants these tokens shown."""
    return PreservingTokenizer(tokenizer, preserved) if preserved else tokenizer
