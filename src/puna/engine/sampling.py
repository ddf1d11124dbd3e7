"""From a row of logits to a token, one sequence at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from puna.engine.constraint import Matcher
from puna.llama.sampler import Candidates, SamplerChain, picks_largest
from puna.llama.vocab import Vocab
from puna.types import Sampling, TokenProb

FloatArray = npt.NDArray[np.float32]

LEAST_LOGPROB = -3.4e38
"""Stands for minus infinity, which JSON cannot say."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen token."""

    token: int
    ends: bool
    """Whether it is an end-of-generation token."""
    prob: TokenProb | None


class TokenSampler:
    """Chooses one sequence's tokens: bans, grammar, sampler chain, probabilities, in that order."""

    def __init__(self, sampling: Sampling, vocab: Vocab, matcher: Matcher | None, n_ctx: int) -> None:
        self._sampling = sampling
        self._vocab = vocab
        self._matcher = matcher
        self._ends = np.fromiter(sorted(vocab.end_tokens), np.int64)
        self._chain = SamplerChain(sampling, vocab, n_ctx)
        self._plain = picks_largest(sampling) and not sampling.post_sampling_probs
        """Whether the chain can be spared."""
        self._n_chosen = 0

    def prime(self, prompt: list[int], produced: list[int], candidates: Candidates) -> None:
        """Bring penalties, grammar and random state to where they are after these tokens."""
        for token in prompt:
            self._chain.accept(token)
        for token in produced:
            self._accept(token)
        self._chain.skip(candidates, len(produced))
        self._n_chosen = len(produced)

    def choose(self, logits: FloatArray, candidates: Candidates) -> Choice:
        """The next token after `logits`, which may be changed. Raises `InvalidRequest` when the grammar gives up."""
        raw = logits.copy() if self._wants_raw else logits
        if self._sampling.ignore_eos or self._n_chosen < self._sampling.min_tokens:
            logits[self._ends] = -np.inf
        if self._matcher is not None:
            allowed = self._matcher.allowed()
            if self._n_chosen < self._sampling.min_tokens and not allowed[logits > -np.inf].any():
                logits[self._ends] = raw[self._ends]  # the grammar allows nothing but the end
            logits[~allowed] = -np.inf
        if self._plain:
            token = int(logits.argmax())
        else:
            candidates.fill(logits)
            self._chain.apply(candidates)
            token = candidates.selected
        prob = self._probability(raw, token, candidates)
        self._n_chosen += 1
        ends = self._vocab.is_eog(token)
        if not ends:
            self._accept(token)
        return Choice(token, ends, prob)

    @property
    def complete(self) -> bool:
        """Whether the grammar allows nothing more, so that the answer is over."""
        return self._matcher is not None and self._matcher.done

    def close(self) -> None:
        self._chain.close()

    def _accept(self, token: int) -> None:
        self._chain.accept(token)
        if self._matcher is not None:
            self._matcher.accept(token)

    @property
    def _wants_raw(self) -> bool:
        """Whether the logits are masked before the chain, so that probabilities need a copy from before."""
        return self._matcher is not None or self._sampling.ignore_eos or self._sampling.min_tokens > 0

    def _probability(self, raw: FloatArray, token: int, candidates: Candidates) -> TokenProb | None:
        n = self._sampling.n_probs
        if n <= 0:
            return None
        if self._sampling.post_sampling_probs:
            return _after_chain(token, candidates, n)
        return _before_chain(raw, token, n)


def _before_chain(logits: FloatArray, token: int, n: int) -> TokenProb:
    n = min(n, len(logits))
    wide = logits.astype(np.float64)
    top_value = wide.max()
    log_sum = top_value + np.log(np.exp(wide - top_value).sum())
    best = np.argpartition(wide, len(wide) - n)[-n:]
    best = best[np.lexsort((best, -wide[best]))]
    top = tuple((int(i), _finite(wide[i] - log_sum)) for i in best)
    return TokenProb(token, _finite(wide[token] - log_sum), top)


def _after_chain(token: int, candidates: Candidates, n: int) -> TokenProb:
    rest = candidates.rest
    logits = rest["logit"].astype(np.float64)
    probs = np.exp(logits - logits.max())
    probs /= probs.sum()
    order = np.argsort(-probs, kind="stable")[:n]
    chosen = probs[rest["id"] == token]
    top = tuple((int(rest["id"][i]), float(probs[i])) for i in order)
    return TokenProb(token, float(chosen[0]) if len(chosen) else 1.0, top)


def _finite(value: float) -> float:
    return max(float(value), LEAST_LOGPROB)
