"""Candidates for the next token, and the chain of C samplers that narrows them."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from puna.llama.library import C
from puna.llama.vocab import Vocab
from puna.types import Sampling

CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
"""The memory layout of `llama_token_data`."""


class Candidates:
    """A reusable array of (id, logit, p) over a vocabulary, as the C samplers want it."""

    def __init__(self, n_vocab: int) -> None:
        self.data = np.empty(n_vocab, CANDIDATE)
        self._ids = np.arange(n_vocab, dtype=np.int32)
        # plain columns over the same memory: writing them is twice as fast as writing named fields
        self._id_column = self.data.view(np.int32).reshape(n_vocab, 3)[:, 0]
        self._logit_column = self.data.view(np.float32).reshape(n_vocab, 3)[:, 1]
        self._start: Any = ctypes.cast(self.data.ctypes.data, C.llama_token_data_p)
        self._struct = C.llama_token_data_array(data=self._start, size=0, selected=-1, sorted=False)
        self.reference = ctypes.byref(self._struct)

    def fill(self, logits: npt.NDArray[np.float32]) -> None:
        """Start over with every token of the vocabulary."""
        self._id_column[:] = self._ids
        self._logit_column[:] = logits
        self._restart(len(self.data))

    def fill_pair(self) -> None:
        """Start over with two equally likely tokens: the least that makes a member draw."""
        self.data[:2] = [(0, 0.0, 0.0), (1, 0.0, 0.0)]
        self._restart(2)

    def _restart(self, size: int) -> None:
        self._struct.data = self._start
        self._struct.size = size
        self._struct.selected = -1
        self._struct.sorted = False

    @property
    def size(self) -> int:
        return int(self._struct.size)

    @property
    def selected(self) -> int:
        """Token id that the chain's last member chose."""
        index = int(self._struct.selected)
        if not 0 <= index < self._struct.size:
            raise ValueError("the sampler chain chose no token")
        return int(self.rest["id"][index])

    @property
    def rest(self) -> npt.NDArray[np.void]:
        """A view of the candidates that are left."""
        address = ctypes.cast(self._struct.data, ctypes.c_void_p).value or 0
        skipped = (address - self.data.ctypes.data) // CANDIDATE.itemsize  # XTC drops from the front by moving the pointer
        return self.data[skipped : skipped + self._struct.size]


def picks_largest(s: Sampling) -> bool:
    """Whether the chain of this `Sampling` always chooses the largest logit, whatever came before.

    Top-k, top-p, min-p, top-n-sigma and temperature never drop or overtake the largest one; the others may.
    """
    reordering = (
        s.logit_bias
        or s.mirostat
        or ("penalties" in s.samplers and (s.repeat_penalty != 1 or s.frequency_penalty or s.presence_penalty))
        or ("dry" in s.samplers and s.dry_multiplier)
        or ("typ_p" in s.samplers and s.typical_p < 1)
        or ("xtc" in s.samplers and s.xtc_probability)
        or "infill" in s.samplers
    )
    return s.temperature <= 0 and not reordering


class SamplerChain:
    """Owns a `llama_sampler` chain built from a request's `Sampling`.

    The random state is that of the last member (and of XTC or mirostat): `skip` brings it to where it was after a
    number of choices, so that an interrupted generation goes on as if nothing had happened.
    """

    def __init__(self, sampling: Sampling, vocab: Vocab, n_ctx: int) -> None:
        self._p = C.llama_sampler_chain_init(C.llama_sampler_chain_default_params())
        self._vocab = vocab
        self._greedy = False
        if sampling.logit_bias:
            self._add_bias(sampling.logit_bias)
        if sampling.mirostat in (1, 2):
            self._add_mirostat(sampling)
        else:
            for name in sampling.samplers:
                self._add_named(name, sampling, n_ctx)
            self._add_choice(sampling)

    def _add(self, member: Any) -> None:
        C.llama_sampler_chain_add(self._p, member)

    def _add_bias(self, pairs: Iterable[tuple[int, float]]) -> None:
        biases = [C.llama_logit_bias(token, bias) for token, bias in pairs]
        array = (C.llama_logit_bias * len(biases))(*biases)
        self._add(C.llama_sampler_init_logit_bias(self._vocab.n_tokens, len(biases), array))

    def _add_mirostat(self, s: Sampling) -> None:
        self._add(C.llama_sampler_init_temp_ext(s.temperature, s.dynatemp_range, s.dynatemp_exponent))
        if s.mirostat == 1:
            self._add(C.llama_sampler_init_mirostat(self._vocab.n_tokens, s.seed, s.mirostat_tau, s.mirostat_eta, 100))
        else:
            self._add(C.llama_sampler_init_mirostat_v2(s.seed, s.mirostat_tau, s.mirostat_eta))

    def _add_choice(self, s: Sampling) -> None:
        self._greedy = s.temperature <= 0
        if self._greedy:
            self._add(C.llama_sampler_init_greedy())
        elif s.adaptive_target >= 0:
            self._add(C.llama_sampler_init_adaptive_p(s.adaptive_target, s.adaptive_decay, s.seed))
        else:
            self._add(C.llama_sampler_init_dist(s.seed))

    def _add_named(self, name: str, s: Sampling, n_ctx: int) -> None:
        last_n = n_ctx if s.repeat_last_n < 0 else s.repeat_last_n
        keep = max(1, s.min_keep)
        if name == "penalties":
            if last_n and (s.repeat_penalty != 1 or s.frequency_penalty or s.presence_penalty):
                self._add(
                    C.llama_sampler_init_penalties(
                        self._vocab.n_tokens, last_n, s.repeat_penalty, s.frequency_penalty, s.presence_penalty
                    )
                )
        elif name == "dry":
            if s.dry_multiplier:
                self._add_dry(s, n_ctx)
        elif name == "top_n_sigma":
            if s.top_n_sigma >= 0:
                self._add(C.llama_sampler_init_top_n_sigma(s.top_n_sigma))
        elif name == "top_k":
            if s.top_k > 0:
                self._add(C.llama_sampler_init_top_k(max(s.top_k, s.min_keep)))
        elif name == "typ_p":
            if s.typical_p < 1:
                self._add(C.llama_sampler_init_typical(s.typical_p, keep))
        elif name == "top_p":
            if s.top_p < 1:
                self._add(C.llama_sampler_init_top_p(s.top_p, keep))
        elif name == "min_p":
            if s.min_p > 0:
                self._add(C.llama_sampler_init_min_p(s.min_p, keep))
        elif name == "xtc":
            if s.xtc_probability > 0 and s.xtc_threshold <= 0.5:
                self._add(C.llama_sampler_init_xtc(s.xtc_probability, s.xtc_threshold, keep, s.seed))
        elif name == "temperature":
            if s.temperature > 0:
                self._add(C.llama_sampler_init_temp_ext(s.temperature, s.dynatemp_range, s.dynatemp_exponent))
        elif name == "infill":
            self._add(C.llama_sampler_init_infill(self._vocab.pointer))
        elif name != "adaptive_p":  # which is a way to choose, not to narrow: `_add_choice` adds it at the end
            raise ValueError(f"unknown sampler {name!r}")

    def _add_dry(self, s: Sampling, n_ctx: int) -> None:
        breakers = [text.encode() for text in s.dry_sequence_breakers]
        array = (ctypes.c_char_p * len(breakers))(*breakers)
        base = s.dry_base if s.dry_base >= 1 else Sampling().dry_base
        last_n = n_ctx if s.dry_penalty_last_n < 0 else s.dry_penalty_last_n
        self._add(
            C.llama_sampler_init_dry(
                self._vocab.pointer, s.dry_multiplier, base, s.dry_allowed_length, last_n,
                ctypes.cast(array, ctypes.POINTER(ctypes.c_char_p)), len(breakers),
            )
        )  # fmt: skip

    def apply(self, candidates: Candidates) -> None:
        """Narrow the candidates and choose one of them."""
        C.llama_sampler_apply(self._p, candidates.reference)

    def accept(self, token: int) -> None:
        """Tell the members that look back (penalties, DRY) about a token of prompt or answer."""
        C.llama_sampler_accept(self._p, token)

    def skip(self, candidates: Candidates, n: int) -> None:
        """Draw `n` times from a throw-away choice, to bring the random state to where `n` choices left it."""
        if self._greedy:
            return
        last = C.llama_sampler_chain_get(self._p, C.llama_sampler_chain_n(self._p) - 1)
        for _ in range(n):
            candidates.fill_pair()
            C.llama_sampler_apply(last, candidates.reference)

    def close(self) -> None:
        if self._p:
            C.llama_sampler_free(self._p)
            self._p = None
