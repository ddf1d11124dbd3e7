"""The vocabulary as llguidance wants it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import llguidance

from puna.llama.library import C
from puna.llama.vocab import Vocab

SPECIAL_MARK = b"\xff"
"""llguidance's prefix for tokens that are markup: no grammar text can produce them."""


LONGEST = 256
"""Bytes of a token's text that are read at the first try."""


_INT, _POINTER = ctypes.c_int32, ctypes.c_void_p
_TOKENIZE = (_POINTER, _POINTER, _INT, _POINTER, _INT, ctypes.c_bool, ctypes.c_bool)


def make_tokenizer(vocab: Vocab) -> llguidance.LLTokenizer:
    """Build llguidance's tokenizer from a vocabulary. Takes half a second for 50,000 tokens, two for 260,000.

    Most of that is one call that holds the interpreter lock. Raises `ValueError` for a vocabulary that it cannot use.
    """
    ends = sorted(vocab.end_tokens) or ([vocab.eos] if vocab.eos >= 0 else [])
    spelling = None if _spells(vocab, BLANK) else _Spelling()
    function = spelling.function if spelling else C._lib.llama_tokenize
    address = ctypes.cast(function, ctypes.c_void_p).value
    tokenizer: llguidance.LLTokenizer = llguidance.LLTokenizer.from_llamacpp(  # type: ignore[attr-defined]  # not in its stubs
        tokens=_pieces(vocab), vocab_ptr=vocab.pointer, tokenize_fptr=address, eos_token=ends, slices=None
    )
    if spelling:
        spelling.greedy = tokenizer.greedy_tokenize
        _kept.append(spelling)
    return tokenizer


BLANK = "\u2581"
"""The character that stands for a space in many vocabularies."""


def _spells(vocab: Vocab, text: str) -> bool:
    """Whether the text can be read back from its tokens."""
    tokens = vocab.tokenize(text, add_special=False, parse_special=False)
    return b"".join(map(vocab.piece, tokens)).endswith(text.encode())


class _Spelling:
    """`llama_tokenize` for vocabularies that take the blank's sign for a blank.

    A grammar whose text holds that sign has to have tokens that spell it, or nothing could be written any more: from the
    first such sign on the longest tokens that fit are taken, its own bytes among them.
    """

    greedy: Callable[[str], list[int]]

    def __init__(self) -> None:
        self._tokenize = _plain(C._lib.llama_tokenize, _INT, *_TOKENIZE)
        self.function = ctypes.CFUNCTYPE(_INT, *_TOKENIZE)(self._spell)

    def _spell(self, vocab: int, text: int, size: int, out: int, capacity: int, special: bool, parse: bool) -> int:
        data = ctypes.string_at(text, size)
        at = data.find(BLANK.encode())
        if at < 0:
            return int(self._tokenize(vocab, text, size, out, capacity, special, parse))
        n = int(self._tokenize(vocab, text, at, out, capacity, special, parse))
        tokens = self.greedy(data[at:].decode("utf-8", "replace"))
        if n < 0 or n + len(tokens) > capacity:
            return -(abs(n) + len(tokens))
        room = (_INT * len(tokens)).from_address(out + n * ctypes.sizeof(_INT))
        for index, token in enumerate(tokens):
            room[index] = token
        return n + len(tokens)


_kept: list[_Spelling] = []
"""Called by address: they have to live as long as the process."""


def _pieces(vocab: Vocab) -> list[bytes]:
    """Every token's text, those that add nothing to an answer marked.

    Calls the library without the checks of ctypes: half of the time is those.
    """
    pointer = ctypes.cast(vocab.pointer, ctypes.c_void_p).value
    read = _plain(C._lib.llama_token_to_piece, ctypes.c_int32, _POINTER, _INT, _POINTER, _INT, _INT, ctypes.c_bool)
    attributes = _plain(C._lib.llama_vocab_get_attr, _INT, _POINTER, _INT)
    markup = C.LLAMA_TOKEN_ATTR_CONTROL | C.LLAMA_TOKEN_ATTR_UNKNOWN
    buffer = ctypes.create_string_buffer(LONGEST)
    address, view = ctypes.addressof(buffer), memoryview(buffer)
    pieces: list[bytes] = []
    for token in range(vocab.n_tokens):
        n = read(pointer, token, address, LONGEST, 0, True)
        piece = bytes(view[:n]) if n >= 0 else vocab.piece(token, special=True)
        pieces.append(SPECIAL_MARK + piece if attributes(pointer, token) & markup else piece)
    return pieces


def _plain(function: Any, result: Any, *arguments: Any) -> Callable[..., Any]:
    """The same function with argument types that are converted quickly."""
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    made: Callable[..., Any] = ctypes.CFUNCTYPE(result, *arguments)(address)
    return made
