"""A grammar at work: which tokens may come next."""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property

import llguidance
import numpy as np
import numpy.typing as npt

from puna.errors import InvalidRequest
from puna.grammar import LIMITS, LazyTrigger, prepare
from puna.llama.constraint_tokenizer import make_tokenizer
from puna.llama.vocab import Vocab
from puna.types import Constraint, Trigger

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
        matcher = self._compile(prepare(constraint, self._token).compiled).deep_copy()
        if constraint.triggers:
            return LazyMatcher(matcher, self._vocab, constraint.triggers, self._tokenizer)
        return Matcher(matcher, self._vocab)

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

    def __init__(self, matcher: llguidance.LLMatcher, vocab: Vocab) -> None:
        self._matcher = matcher
        self._vocab = vocab
        self._mask = np.zeros((vocab.n_tokens + 31) // 32, np.int32)

    @property
    def active(self) -> bool:
        """Whether the answer is constrained now."""
        return True

    def allowed(self) -> npt.NDArray[np.bool_]:
        """Which tokens may come next, end-of-generation tokens included; at least one. Shape: (n_vocab,)."""
        self._matcher.unsafe_compute_mask_ptr(self._mask.ctypes.data, self._mask.nbytes)
        self._check()
        if not self._mask.any():
            raise InvalidRequest("the grammar cannot be completed with the tokens of this model", param="grammar")
        return MASK_BITS[self._mask.view(np.uint8)].reshape(-1)[: self._vocab.n_tokens]

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


class LazyMatcher(Matcher):
    """Lets everything pass up to a trigger, and follows the grammar from there on."""

    def __init__(
        self,
        matcher: llguidance.LLMatcher,
        vocab: Vocab,
        triggers: tuple[Trigger, ...],
        tokenizer: llguidance.LLTokenizer,
    ) -> None:
        super().__init__(matcher, vocab)
        self._trigger = LazyTrigger(triggers)
        self._tokenizer = tokenizer
        self._active = False

    @property
    def active(self) -> bool:
        return self._active

    def accept(self, token: int) -> None:
        if self._active:
            super().accept(token)
            return
        begun = self._trigger.feed(token, self._vocab.piece(token, special=True))
        if begun is not None:
            self._active = True
            self._begin(token, begun)

    def forced(self) -> list[int]:
        return super().forced() if self._active else []

    @property
    def done(self) -> bool:
        return self._active and super().done

    def _begin(self, token: int, text: bytes) -> None:
        """Bring the grammar to where it is after the text that the trigger begins, which `token` ends."""
        if self._matcher.validate_tokens([token]) == 1 and text == self._vocab.piece(token, special=True):
            self._matcher.consume_token(token)
        elif text:
            self._matcher.consume_tokens(self._tokenizer.tokenize_bytes(text))
        if self._matcher.is_error():
            shown = text.decode("utf-8", "replace")
            raise InvalidRequest(f"the grammar does not begin with its trigger, which was {shown[:100]!r}", param="grammar")
