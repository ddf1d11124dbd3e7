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


def make_tokenizer(vocab: Vocab) -> llguidance.LLTokenizer:
    """Build llguidance's tokenizer from a vocabulary. Takes half a second for 50,000 tokens, two for 260,000.

    Most of that is one call that holds the interpreter lock. Raises `ValueError` for a vocabulary that it cannot use.
    """
    ends = sorted(vocab.end_tokens) or ([vocab.eos] if vocab.eos >= 0 else [])
    address = ctypes.cast(C._lib.llama_tokenize, ctypes.c_void_p).value
    tokenizer: llguidance.LLTokenizer = llguidance.LLTokenizer.from_llamacpp(  # type: ignore[attr-defined]  # not in its stubs
        tokens=_pieces(vocab), vocab_ptr=vocab.pointer, tokenize_fptr=address, eos_token=ends, slices=None
    )
    return tokenizer


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


_INT, _POINTER = ctypes.c_int32, ctypes.c_void_p


def _plain(function: Any, result: Any, *arguments: Any) -> Callable[..., Any]:
    """The same function with argument types that are converted quickly."""
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    made: Callable[..., Any] = ctypes.CFUNCTYPE(result, *arguments)(address)
    return made
