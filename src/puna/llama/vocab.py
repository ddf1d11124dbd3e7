"""A vocabulary: text to token ids and back."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

from puna.errors import InvalidRequest
from puna.llama.library import C
from puna.llama.pieces import PIECE, pieces
from puna.types import MEDIA, FimTokens

MEDIA_TEXT = b"<__media__>"
"""What stands for a picture or a sound in the text of a prompt."""

INT32_MAX = 2**31 - 1


class Vocab:
    """Borrowed from a `Model`, which must outlive it. Safe to use from any thread: it only reads."""

    def __init__(self, pointer: Any) -> None:
        self._p = pointer
        self.n_tokens: int = C.llama_vocab_n_tokens(pointer)
        self.type: int = C.llama_vocab_type(pointer)
        self.bos: int = C.llama_vocab_bos(pointer)
        """Token id, -1 where the model has none; likewise the next ones."""
        self.eos: int = C.llama_vocab_eos(pointer)
        self.eot: int = C.llama_vocab_eot(pointer)
        self.add_bos: bool = C.llama_vocab_get_add_bos(pointer)
        self.sep: int = C.llama_vocab_sep(pointer)
        self.add_eos: bool = C.llama_vocab_get_add_eos(pointer)
        self.add_sep: bool = C.llama_vocab_get_add_sep(pointer)
        """Whether the model wants a separator between two texts."""
        self.fim = FimTokens(
            prefix=C.llama_vocab_fim_pre(pointer),
            suffix=C.llama_vocab_fim_suf(pointer),
            middle=C.llama_vocab_fim_mid(pointer),
            repo=C.llama_vocab_fim_rep(pointer),
            file=C.llama_vocab_fim_sep(pointer),
            pad=C.llama_vocab_fim_pad(pointer),
        )

    @property
    def pointer(self) -> Any:
        """For the handles of this package only."""
        return self._p

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        """Token ids of `text`.

        `add_special` adds what the model wants around a text (BOS, EOS); `parse_special` lets texts of control tokens
        become those tokens. Raises `InvalidRequest` for text that is not valid Unicode or over 2 GiB.
        """
        if len(text) <= PIECE or self.type not in (C.LLAMA_VOCAB_TYPE_BPE, C.LLAMA_VOCAB_TYPE_SPM):
            return self._tokenize(text, add_special=add_special, parse_special=parse_special)
        return self._tokenize_long(text, add_special=add_special, parse_special=parse_special)

    def _tokenize_long(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        found = pieces(text, self._marks, anywhere=self.type == C.LLAMA_VOCAB_TYPE_BPE)
        tokens = [self.bos] if add_special and self.add_bos and self.bos >= 0 else []
        for number, piece in enumerate(found):
            # where the vocabulary puts a blank before every text, that is the one which the piece begins with
            piece = piece[1:] if number and self._adds_blank and piece[0] == " " else piece
            tokens += self._tokenize(piece, add_special=False, parse_special=parse_special)
        return [*tokens, self.eos] if add_special and self.add_eos and self.eos >= 0 else tokens

    def _tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        try:
            data = text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InvalidRequest("the text holds a lone surrogate, which is not a character") from error
        if len(data) > INT32_MAX // 2:
            raise InvalidRequest("the text is too long to be tokenized")
        capacity = len(data) // 2 + 16
        while True:
            tokens = (C.llama_token * capacity)()
            n: int = C.llama_tokenize(self._p, data, len(data), tokens, capacity, add_special, parse_special)
            if n >= 0:
                return tokens[:n]
            if n == -(2**31):
                raise InvalidRequest("the text is too long to be tokenized")
            capacity = -n

    def piece(self, token: int, *, special: bool = False) -> bytes:
        """The bytes a token stands for. Control tokens are empty unless `special`."""
        pieces = self._special_pieces if special else self._pieces
        return pieces[token]

    @cached_property
    def _pieces(self) -> list[bytes]:
        return [self._read_piece(token, special=False) for token in range(self.n_tokens)]

    @cached_property
    def _special_pieces(self) -> list[bytes]:
        return [self._read_piece(token, special=True) for token in range(self.n_tokens)]

    def _read_piece(self, token: int, *, special: bool) -> bytes:
        buffer = ctypes.create_string_buffer(64)
        n = C.llama_token_to_piece(self._p, token, buffer, len(buffer), 0, special)
        if n < 0:
            buffer = ctypes.create_string_buffer(-n)
            n = C.llama_token_to_piece(self._p, token, buffer, len(buffer), 0, special)
        return buffer.raw[:n]

    def detokenize(self, tokens: Sequence[int]) -> str:
        """The text of `tokens`, control tokens included as their texts, and `MEDIA_TEXT` for each `MEDIA`.

        Raises `InvalidRequest` for unknown ids.
        """
        self.check(token for token in tokens if token != MEDIA)
        pieces = (MEDIA_TEXT if token == MEDIA else self.piece(token, special=True) for token in tokens)
        return b"".join(pieces).decode("utf-8", "replace")

    def check(self, tokens: Iterable[int], *, param: str | None = None) -> None:
        """Raise `InvalidRequest` unless every id is in the vocabulary."""
        for token in tokens:
            if not 0 <= token < self.n_tokens:
                raise InvalidRequest(f"token id {token} is outside the vocabulary (0 to {self.n_tokens - 1})", param=param)

    def text(self, token: int) -> str:
        """The token's text as the vocabulary stores it, such as `<|im_end|>`; empty for -1."""
        if token < 0:
            return ""
        raw: bytes = C.llama_vocab_get_text(self._p, token)
        return raw.decode("utf-8", "replace")

    def is_eog(self, token: int) -> bool:
        """Whether a generation ends with this token."""
        return token in self.end_tokens

    def is_control(self, token: int) -> bool:
        """Whether the token is markup rather than text."""
        return bool(C.llama_vocab_is_control(self._p, token))

    @cached_property
    def end_tokens(self) -> frozenset[int]:
        """Every end-of-generation token."""
        return frozenset(token for token in range(self.n_tokens) if C.llama_vocab_is_eog(self._p, token))

    def special_texts(self) -> list[str]:
        """Texts of control tokens, longest first: those that text from outside must not be taken for."""
        return self._special_texts

    def added_texts(self) -> list[str]:
        """Texts of user-defined tokens, longest first. They are found in any text, with `parse_special` or without."""
        return self._added_texts

    @cached_property
    def _marks(self) -> list[str]:
        return [*self._special_texts, *self._added_texts]

    @cached_property
    def _adds_blank(self) -> bool:
        first = self._tokenize("a", add_special=False, parse_special=False)
        return b"".join(self.piece(token) for token in first).startswith(b" ")

    @cached_property
    def _special_texts(self) -> list[str]:
        return self._texts_with(C.LLAMA_TOKEN_ATTR_CONTROL | C.LLAMA_TOKEN_ATTR_UNKNOWN)

    @cached_property
    def _added_texts(self) -> list[str]:
        return self._texts_with(C.LLAMA_TOKEN_ATTR_USER_DEFINED)

    def _texts_with(self, attributes: int) -> list[str]:
        found = {self.text(token) for token in range(self.n_tokens) if C.llama_vocab_get_attr(self._p, token) & attributes}
        return sorted(filter(None, found), key=len, reverse=True)
