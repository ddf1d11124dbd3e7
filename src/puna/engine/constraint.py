"""A grammar at work: which tokens may come next."""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property

import llguidance
import numpy as np
import numpy.typing as npt

from puna.errors import InvalidRequest
from puna.grammar import LIMITS, prepare
from puna.llama.constraint_tokenizer import make_tokenizer
from puna.llama.vocab import Vocab
from puna.types import Constraint

MASK_BITS = np.unpackbits(np.arange(256, dtype=np.uint8).reshape(-1, 1), axis=1, bitorder="little").astype(bool)


CACHED = 32
"""Compiled grammars that are kept."""


class ConstraintFactory:
    """Makes matchers for one vocabulary. The tokenizer is built at the first use: it takes a second for large ones."""

    def __init__(self, vocab: Vocab) -> None:
        self._vocab = vocab
        self._compiled: OrderedDict[str, llguidance.LLMatcher] = OrderedDict()

    @cached_property
    def _tokenizer(self) -> llguidance.LLTokenizer:
        return make_tokenizer(self._vocab)

    def make(self, constraint: Constraint) -> Matcher:
        """A fresh matcher. Raises `InvalidRequest` when the grammar cannot be compiled."""
        return Matcher(self._compile(prepare(constraint, self._token).compiled).deep_copy(), self._vocab.n_tokens)

    def _compile(self, grammar: str) -> llguidance.LLMatcher:
        matcher = self._compiled.pop(grammar, None)
        if matcher is None:
            matcher = llguidance.LLMatcher(self._tokenizer, grammar, log_level=0, limits=LIMITS)
            if matcher.is_error():
                raise InvalidRequest(f"the grammar cannot be used: {matcher.get_error()}", param="grammar")
        self._compiled[grammar] = matcher
        if len(self._compiled) > CACHED:
            self._compiled.popitem(last=False)
        return matcher

    def _token(self, text: str) -> int | None:
        tokens = self._vocab.tokenize(text, add_special=False, parse_special=True)
        return tokens[0] if len(tokens) == 1 else None


class Matcher:
    """Follows one answer through a grammar."""

    def __init__(self, matcher: llguidance.LLMatcher, n_vocab: int) -> None:
        self._matcher = matcher
        self._mask = np.zeros((n_vocab + 31) // 32, np.int32)
        self._n_vocab = n_vocab

    def allowed(self) -> npt.NDArray[np.bool_]:
        """Which tokens may come next, end-of-generation tokens included. Shape: (n_vocab,)."""
        self._matcher.unsafe_compute_mask_ptr(self._mask.ctypes.data, self._mask.nbytes)
        self._check()
        return MASK_BITS[self._mask.view(np.uint8)].reshape(-1)[: self._n_vocab]

    def accept(self, token: int) -> None:
        """Advance by a token that `allowed` admitted."""
        self._matcher.consume_token(token)
        self._check()

    def forced(self) -> list[int]:
        """The tokens that must come next because the grammar allows no other text, in order; often none."""
        tokens = self._matcher.compute_ff_tokens()
        self._check()
        return list(tokens)

    @property
    def done(self) -> bool:
        """Whether nothing may follow but the end."""
        return bool(self._matcher.is_stopped())

    def _check(self) -> None:
        if self._matcher.is_error():
            raise InvalidRequest(f"the grammar is too complex to follow: {self._matcher.get_error()}", param="grammar")
