"""A grammar at work: which tokens may come next."""

from __future__ import annotations

import signal
import time
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cached_property

import llguidance
import numpy as np
import numpy.typing as npt

from puna.errors import InvalidRequest
from puna.grammar import LIMITS, LazyTrigger, deep_pool, prepare
from puna.llama.constraint_tokenizer import make_tokenizer
from puna.llama.vocab import Vocab
from puna.types import Constraint, Trigger

MASK_BITS = np.unpackbits(np.arange(256, dtype=np.uint8).reshape(-1, 1), axis=1, bitorder="little").astype(bool)

CACHED = 32
"""Compiled grammars that are kept."""


SLOWEST = 0.2
"""Processor seconds that one step of one grammar may take: all running answers wait for it."""

HOPELESS = 10.0
"""Seconds after which a step is taken to have no end: this process ends, and another one finds out whose it was."""

PATIENCE = 2.0
"""Processor seconds that one answer's grammar may take in all beyond what is usual."""

USUAL = 0.02
"""Processor seconds for one step."""


class ConstraintFactory:
    """Makes matchers for one vocabulary. Grammars are compiled on a thread, with a deep stack, and kept."""

    def __init__(self, vocab: Vocab) -> None:
        self._vocab = vocab
        self._thread = deep_pool(1, "grammar")
        self._compiled: OrderedDict[str, llguidance.LLMatcher | InvalidRequest] = OrderedDict()

    @cached_property
    def _tokenizer(self) -> llguidance.LLTokenizer:
        return make_tokenizer(self._vocab)

    def warm(self) -> None:
        """Build the tokenizer, which takes seconds for large vocabularies, before anybody needs it."""
        self._thread.submit(lambda: self._tokenizer)

    def compile(self, constraint: Constraint) -> Future[None]:
        """Begin to compile; once that is done `make` takes no time."""
        return self._thread.submit(self._compile, constraint)

    def knows(self, constraint: Constraint) -> bool:
        """Whether `make` takes no time."""
        return _key(constraint) in self._compiled

    def make(self, constraint: Constraint) -> Matcher:
        """A fresh matcher. Raises `InvalidRequest` when the grammar cannot be compiled."""
        if not self.knows(constraint):
            self.compile(constraint).result()
        found = self._compiled[_key(constraint)]
        if isinstance(found, InvalidRequest):
            raise found
        if constraint.triggers:
            lenient = constraint.kind == "outline"  # the output is read whatever it is, and nobody wrote the trigger
            return LazyMatcher(found.deep_copy(), self._vocab, constraint.triggers, self._tokenizer, lenient=lenient)
        return Matcher(found.deep_copy(), self._vocab)

    def _compile(self, constraint: Constraint) -> None:
        key = _key(constraint)
        found = self._compiled.pop(key, None)
        self._compiled[key] = found if found is not None else self._read(constraint)
        while len(self._compiled) > CACHED:
            self._compiled.popitem(last=False)

    def _read(self, constraint: Constraint) -> llguidance.LLMatcher | InvalidRequest:
        try:
            grammar = prepare(constraint, self._token).compiled
            matcher = llguidance.LLMatcher(self._tokenizer, grammar, log_level=0, limits=LIMITS)
        except InvalidRequest as error:
            return error
        except ValueError as error:
            return InvalidRequest(f"output cannot be constrained with this model's vocabulary: {error}")
        if matcher.is_error():
            return InvalidRequest(f"the grammar cannot be used: {matcher.get_error()}", param="grammar")
        return matcher

    def _token(self, text: str) -> int | None:
        tokens = self._vocab.tokenize(text, add_special=False, parse_special=True)
        return tokens[0] if len(tokens) == 1 else None


def _key(constraint: Constraint) -> str:
    return constraint.compiled or f"{constraint.kind} {constraint.strict} {constraint.source}"


class Matcher:
    """Follows one answer through a grammar."""

    def __init__(self, matcher: llguidance.LLMatcher, vocab: Vocab) -> None:
        self._matcher = matcher
        self._vocab = vocab
        self._mask = np.zeros((vocab.n_tokens + 31) // 32, np.int32)
        self._excess = 0.0

    @property
    def active(self) -> bool:
        """Whether the answer is constrained now."""
        return True

    def allowed(self) -> npt.NDArray[np.bool_]:
        """Which tokens may come next, end-of-generation tokens included; at least one. Shape: (n_vocab,)."""
        with self._work():
            self._matcher.unsafe_compute_mask_ptr(self._mask.ctypes.data, self._mask.nbytes)
        if not self._mask.any():
            raise InvalidRequest("the grammar cannot be completed with the tokens of this model", param="grammar")
        return MASK_BITS[self._mask.view(np.uint8)].reshape(-1)[: self._vocab.n_tokens]

    def accept(self, token: int) -> None:
        """Advance by a token that `allowed` admitted."""
        with self._work():
            self._matcher.consume_token(token)

    def forced(self) -> list[int]:
        """The tokens that must come next because the grammar allows no other text, in order; often none."""
        with self._work():
            tokens = self._matcher.compute_ff_tokens()
        return list(tokens)

    @property
    def done(self) -> bool:
        """Whether nothing may follow but the end."""
        return bool(self._matcher.is_stopped())

    @contextmanager
    def _work(self) -> Iterator[None]:
        """Raise `InvalidRequest` where the engine gives up, or takes so long that others must not go on waiting for it."""
        begin = time.thread_time()
        signal.setitimer(signal.ITIMER_REAL, HOPELESS)  # its signal ends the process, which nothing else could interrupt
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        if self._matcher.is_error():
            raise InvalidRequest(f"the grammar is too complex to follow: {self._matcher.get_error()}", param="grammar")
        seconds = time.thread_time() - begin
        self._excess += max(0.0, seconds - USUAL)
        if seconds > SLOWEST or self._excess > PATIENCE:
            raise InvalidRequest("the grammar is too complex to follow: it takes too much time for each token", param="grammar")


class LazyMatcher(Matcher):
    """Lets everything pass up to a trigger, and follows the grammar from there on."""

    def __init__(
        self,
        matcher: llguidance.LLMatcher,
        vocab: Vocab,
        triggers: tuple[Trigger, ...],
        tokenizer: llguidance.LLTokenizer,
        *,
        lenient: bool = False,
    ) -> None:
        """`lenient` is whether an answer whose trigger's token goes on otherwise than the grammar stays free."""
        super().__init__(matcher, vocab)
        self._trigger = LazyTrigger(triggers)
        self._tokenizer = tokenizer
        self._lenient = lenient
        self._active = self._free = False
        self._past: list[tuple[int, int]] = []
        """Every token so far, with where its text begins."""
        self._n_bytes = 0

    @property
    def active(self) -> bool:
        return self._active

    def accept(self, token: int) -> None:
        if self._active:
            super().accept(token)
        if self._active or self._free:
            return
        piece = self._vocab.piece(token, special=True)
        self._past.append((self._n_bytes, token))
        self._n_bytes += len(piece)
        begun = self._trigger.feed(token, piece)
        if begun is not None:
            self._active = self._begin(begun)
            self._free = not self._active
            self._past.clear()

    def forced(self) -> list[int]:
        return super().forced() if self._active else []

    @property
    def done(self) -> bool:
        return self._active and super().done

    def _begin(self, text: bytes) -> bool:
        """Bring the grammar to where it is after the text that the trigger begins; whether it has a place for that."""
        start = self._n_bytes - len(text)
        whole = [(at, token) for at, token in self._past if at >= start]
        head = text[: whole[0][0] - start] if whole else text
        # Control tokens are themselves to a grammar that names them, and their texts to others.
        own = [*self._tokenizer.tokenize_bytes(head), *(token for _, token in whole)]
        for tokens in (own, self._tokenizer.tokenize_bytes(text)):
            if self._matcher.validate_tokens(tokens) == len(tokens):
                self._matcher.consume_tokens(tokens)
                return True
        if self._lenient:
            return False
        shown = text.decode("utf-8", "replace")
        raise InvalidRequest(f"the grammar does not begin with its trigger, which was {shown[:100]!r}", param="grammar")
