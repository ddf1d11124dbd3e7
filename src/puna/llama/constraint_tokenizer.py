"""The vocabulary as llguidance wants it."""

from __future__ import annotations

import ctypes

import llguidance

from puna.llama.library import C
from puna.llama.vocab import Vocab

SPECIAL_MARK = b"\xff"
"""llguidance's prefix for tokens that are markup: no grammar text can produce them."""


def make_tokenizer(vocab: Vocab) -> llguidance.LLTokenizer:
    """Build llguidance's tokenizer from a vocabulary. Takes most of a second for 50,000 tokens."""
    pieces = [
        SPECIAL_MARK + vocab.piece(token, special=True) if vocab.is_control(token) else vocab.piece(token)
        for token in range(vocab.n_tokens)
    ]
    ends = sorted(vocab.end_tokens) or ([vocab.eos] if vocab.eos >= 0 else [])
    address = ctypes.cast(C._lib.llama_tokenize, ctypes.c_void_p).value
    tokenizer: llguidance.LLTokenizer = llguidance.LLTokenizer.from_llamacpp(  # type: ignore[attr-defined]  # not in its stubs
        tokens=pieces, vocab_ptr=vocab.pointer, tokenize_fptr=address, eos_token=ends, slices=None
    )
    return tokenizer
