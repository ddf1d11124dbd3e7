"""From a row of logits to a token, one sequence at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from puna.engine.constraint import Matcher
from puna.engine.thinking import ThinkingTracker
from puna.llama.sampler import Candidates, SamplerChain, picks_largest
from puna.llama.vocab import Vocab
from puna.types import Sampling, Thinking, TokenProb

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
    forced: tuple[int, ...] = ()
    """Tokens that must follow because the grammar allows nothing else: nothing has to be computed to choose them."""

    @property
    def tokens(self) -> tuple[int, ...]:
        """The chosen token and those that must follow."""
        return (self.token, *self.forced)


class TokenSampler:
    """Chooses one sequence's tokens: bans, grammar, sampler chain, probabilities, in that order.

    Where thinking has to end, the tokens that end it come without being chosen.
    """

    def __init__(self, sampling: Sampling, vocab: Vocab, matcher: Matcher | None, thinking: Thinking | None, n_ctx: int) -> None:
        self._sampling = sampling
        self._vocab = vocab
        self._matcher = matcher
        self._thinking = ThinkingTracker(thinking) if thinking else None
        self._ends = np.fromiter(sorted(vocab.end_tokens), np.int64)
        self._chain = SamplerChain(sampling, vocab, n_ctx)
        self._plain = picks_largest(sampling) and not sampling.post_sampling_probs
        """Whether the chain can be spared."""
        self._n_chosen = 0

    def prime(self, prompt: Sequence[int], produced: Sequence[int], candidates: Candidates, most: int) -> None:
        """Bring penalties, grammar and random state to where they are after these tokens, chosen at most `most` at once."""
        for token in prompt:
            self._chain.accept(token)
        n_drawn = n_forced = 0
        for token in produced:
            if n_forced:
                self._follow(token)
                n_forced -= 1
            else:
                n_forced = min(len(self._accept(token)), most - 1)
                n_drawn += 1
        self._chain.skip(candidates, n_drawn)
        self._n_chosen = len(produced)

    def choose(self, logits: FloatArray, candidates: Candidates, most: int) -> Choice:
        """The next token after `logits`, which may be changed, and up to `most` - 1 that must follow it.

        Raises `InvalidRequest` when the grammar gives up.
        """
        ending = self._ending()
        raw = logits.copy() if self._wants_raw else logits
        self._mask(logits)
        if ending is not None:
            token = ending
            self._chain.skip(candidates, 1)  # as if it had been chosen, so that a resumed answer draws the same numbers
        elif self._plain:
            token = int(logits.argmax())
        else:
            candidates.fill(logits)
            self._chain.apply(candidates)
            token = candidates.selected
        prob = self._probability(raw, token, None if ending is not None else candidates)
        self._n_chosen += 1
        if self._vocab.is_eog(token):
            return Choice(token, True, prob)
        forced = self._accept(token)[: most - 1]
        for follower in forced:
            self._follow(follower)
        self._n_chosen += len(forced)
        return Choice(token, False, prob, tuple(forced))

    @property
    def goes_through_all(self) -> bool:
        """Whether the next choice looks at all candidates, and at no grammar."""
        return self._matcher is None and not self._plain

    @property
    def complete(self) -> bool:
        """Whether the grammar allows nothing more, so that the answer is over."""
        return self._matcher is not None and self._matcher.done

    def end_thinking(self) -> None:
        """Let the answer think no further."""
        if self._thinking is not None:
            self._thinking.stop()

    def close(self) -> None:
        self._chain.close()

    def _ending(self) -> int | None:
        """The next token of those that end the thinking; None while it may go on, or the grammar has no place for it."""
        if self._thinking is None or (token := self._thinking.due) is None:
            return None
        if self._matcher is not None and self._matcher.active and not self._matcher.allowed()[token]:
            return None
        return token

    def _accept(self, token: int) -> list[int]:
        """Advance by a token; the tokens that must follow it."""
        self._follow(token)
        if self._thinking is not None and self._thinking.due is not None:
            return []
        if self._matcher is None or self._sampling.n_probs > 0:  # each token's probabilities need a row of logits
            return []
        return [token for token in self._matcher.forced() if not self._vocab.is_eog(token)]

    def _follow(self, token: int) -> None:
        self._chain.accept(token)
        if self._matcher is not None:
            self._matcher.accept(token)
        if self._thinking is not None:
            self._thinking.feed(token, self._vocab.piece(token, special=True))

    def _mask(self, logits: FloatArray) -> None:
        """Make impossible what the grammar, `ignore_eos` and `min_tokens` do not allow."""
        hold = self._sampling.ignore_eos or self._n_chosen < self._sampling.min_tokens
        if self._matcher is not None and self._matcher.active:
            allowed = self._matcher.allowed()
            if hold:
                going_on = allowed.copy()
                going_on[self._ends] = False
                if going_on.any():  # else the grammar allows nothing but the end
                    allowed = going_on
            logits[~allowed] = -np.inf
        elif hold:
            logits[self._ends] = -np.inf

    @property
    def _wants_raw(self) -> bool:
        """Whether probabilities need a copy of the logits from before the mask."""
        masked = self._matcher is not None or self._sampling.ignore_eos or self._sampling.min_tokens > 0
        return masked and self._sampling.n_probs > 0

    def _probability(self, raw: FloatArray, token: int, candidates: Candidates | None) -> TokenProb | None:
        """Without `candidates` there was nothing to choose from."""
        n = self._sampling.n_probs
        if n <= 0:
            return None
        if self._sampling.post_sampling_probs:
            return TokenProb(token, 1.0, ((token, 1.0),)) if candidates is None else _after_chain(token, candidates, n)
        return before_chain(raw, token, n)


def before_chain(logits: FloatArray, token: int, n: int) -> TokenProb:
    """A token's log-probability under a row of logits, with the `n` most likely ones."""
    n = min(n, len(logits))
    wide = logits.astype(np.float64)
    top_value = wide.max()
    log_sum = top_value + np.log(np.exp(wide - top_value).sum())
    best = np.argpartition(wide, len(wide) - n)[len(wide) - n :] if n else np.empty(0, np.int64)
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
