"""Each sampler's effect on a known distribution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from puna.llama.context import FloatArray
from puna.llama.model import Model
from puna.llama.sampler import Candidates, SamplerChain, picks_largest
from puna.llama.vocab import Vocab
from puna.types import Sampling

OFF = {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "temperature": 1.0}


@pytest.fixture(scope="module")
def vocab(tiny_llama: Path) -> Iterator[Vocab]:
    with Model(str(tiny_llama), vocab_only=True) as model:
        yield model.vocab


def logits_of(vocab: Vocab, *probs: float) -> FloatArray:
    """Logits of a distribution over the first tokens; the rest is all but impossible."""
    logits = np.full(vocab.n_tokens, -40.0, np.float32)
    logits[: len(probs)] = np.log(probs)
    return logits


def survivors(vocab: Vocab, logits: FloatArray, *history: int, **fields: object) -> dict[int, float]:
    """The candidates that a chain leaves, with their probabilities."""
    chain = SamplerChain(Sampling(**{**OFF, **fields}), vocab, 512)  # type: ignore[arg-type]  # passed on
    for token in history:
        chain.accept(token)
    candidates = Candidates(vocab.n_tokens)
    candidates.fill(logits)
    chain.apply(candidates)
    rest = candidates.rest
    chain.close()
    values = np.exp(rest["logit"].astype(np.float64) - rest["logit"].max())
    values /= values.sum()
    return {int(id): float(p) for id, p in zip(rest["id"], values, strict=True) if p > 1e-9}


def draws(vocab: Vocab, logits: FloatArray, n: int = 400, **fields: object) -> Counter[int]:
    """How often each token is chosen by one chain that is used again and again."""
    chain = SamplerChain(Sampling(**{**OFF, "seed": 7, **fields}), vocab, 512)  # type: ignore[arg-type]  # passed on
    candidates = Candidates(vocab.n_tokens)
    counts: Counter[int] = Counter()
    for _ in range(n):
        candidates.fill(logits)
        chain.apply(candidates)
        counts[candidates.selected] += 1
    chain.close()
    return counts


FOUR = (0.5, 0.25, 0.15, 0.1)


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"top_k": 2}, {0, 1}),
        ({"top_k": 1, "min_keep": 3}, {0, 1, 2}),
        ({"top_p": 0.7}, {0, 1}),
        ({"top_p": 0.1, "min_keep": 2}, {0, 1}),
        ({"min_p": 0.4}, {0, 1}),
        ({"typical_p": 0.2}, {1}),
        ({"top_n_sigma": 1.0}, {0, 1, 2, 3}),
        ({"xtc_probability": 1.0, "xtc_threshold": 0.2}, {1, 2, 3}),
        ({"logit_bias": ((0, float("-inf")), (2, float("-inf")))}, {1, 3}),
        ({"samplers": ("top_k",), "top_k": 3, "top_p": 0.1}, {0, 1, 2}),
        ({"samplers": ()}, {0, 1, 2, 3}),
    ],
)
def test_what_is_kept(vocab: Vocab, fields: dict[str, object], kept: set[int]) -> None:
    assert set(survivors(vocab, logits_of(vocab, *FOUR), **fields)) == kept


def test_top_n_sigma_looks_at_the_spread_of_all_logits(vocab: Vocab) -> None:
    logits = np.linspace(0, 1, vocab.n_tokens).astype(np.float32)
    kept = survivors(vocab, logits, top_n_sigma=0.5)
    assert min(logits[list(kept)]) >= 1 - 0.5 * logits.std() - 1e-3
    assert 1 < len(kept) < vocab.n_tokens


def test_the_order_of_samplers_matters(vocab: Vocab) -> None:
    logits = logits_of(vocab, *FOUR)
    first = survivors(vocab, logits, samplers=("top_p", "temperature"), top_p=0.7, temperature=100.0)
    last = survivors(vocab, logits, samplers=("temperature", "top_p"), top_p=0.7, temperature=100.0)
    assert set(first) == {0, 1}
    assert len(last) > 2


def test_temperature_sharpens_and_flattens(vocab: Vocab) -> None:
    logits = logits_of(vocab, *FOUR)
    assert survivors(vocab, logits, temperature=0.5)[0] == pytest.approx(0.25 / (0.25 + 0.0625 + 0.0225 + 0.01), abs=1e-4)
    assert survivors(vocab, logits, temperature=1.0)[0] == pytest.approx(0.5, abs=1e-4)


def test_dynamic_temperature_depends_on_the_entropy(vocab: Vocab) -> None:
    sure, unsure = logits_of(vocab, 0.97, 0.01, 0.01, 0.01), logits_of(vocab, 0.28, 0.24, 0.24, 0.24)
    fields = {"temperature": 1.0, "dynatemp_range": 0.9, "top_k": 4}
    assert survivors(vocab, sure, **fields)[0] > 0.99
    assert survivors(vocab, unsure, **fields)[0] < 0.28


@pytest.mark.parametrize(
    ("fields", "ratio"),
    [
        ({"presence_penalty": 1.0}, np.exp(-1)),
        ({"frequency_penalty": 0.5}, np.exp(-1.0)),
        ({"repeat_penalty": 1.0}, 1.0),
        ({"presence_penalty": 1.0, "repeat_last_n": 0}, 1.0),
        ({"presence_penalty": 1.0, "repeat_last_n": 1}, 1.0),
    ],
)
def test_penalties_fall_on_what_was_seen(vocab: Vocab, fields: dict[str, object], ratio: float) -> None:
    logits = logits_of(vocab, 0.5, 0.5)
    kept = survivors(vocab, logits, 0, 0, 9, **fields)  # token 0 twice, then another
    assert kept[0] / kept[1] == pytest.approx(ratio, rel=1e-3)


def test_repeat_penalty_divides_positive_and_multiplies_negative_logits(vocab: Vocab) -> None:
    logits = np.full(vocab.n_tokens, -40.0, np.float32)
    logits[:3] = (2.0, 2.0, -1.0)
    kept = survivors(vocab, logits, 0, 2, repeat_penalty=2.0)
    assert kept[0] / kept[1] == pytest.approx(np.exp(-1), rel=1e-3)
    assert kept[2] / kept[1] == pytest.approx(np.exp(-4), rel=1e-3)


def test_dry_punishes_the_token_that_would_go_on_repeating(vocab: Vocab) -> None:
    a, b, c = 400, 401, 402
    logits = np.full(vocab.n_tokens, -40.0, np.float32)
    logits[[a, b, c]] = 0.0
    kept = survivors(vocab, logits, a, b, c, a, b, dry_multiplier=1.0, dry_allowed_length=2)
    assert kept[c] < kept[a] == pytest.approx(kept[b])


@pytest.mark.parametrize("version", [1, 2])
def test_mirostat_holds_surprise_near_its_target(vocab: Vocab, version: int) -> None:
    logits = (-1.3 * np.log(np.arange(1, vocab.n_tokens + 1))).astype(np.float32)
    low = draws(vocab, logits, mirostat=version, mirostat_tau=1.0, mirostat_eta=0.1)
    high = draws(vocab, logits, mirostat=version, mirostat_tau=6.0, mirostat_eta=0.1)
    assert len(low) < len(high)


def test_adaptive_p_prefers_tokens_near_its_target(vocab: Vocab) -> None:
    logits = logits_of(vocab, *FOUR)
    plain = draws(vocab, logits)
    low = draws(vocab, logits, adaptive_target=0.1, adaptive_decay=0.0)
    assert low[0] < plain[0]


def test_drawing_follows_the_distribution_and_the_seed(vocab: Vocab) -> None:
    logits = logits_of(vocab, *FOUR)
    counts = draws(vocab, logits, n=4000)
    for token, p in enumerate(FOUR):
        assert counts[token] / 4000 == pytest.approx(p, abs=0.03)
    assert counts == draws(vocab, logits, n=4000)
    assert counts != draws(vocab, logits, n=4000, seed=8)


@pytest.mark.parametrize("fields", [{}, {"top_k": 2}, {"top_k": 1}])
def test_skipping_brings_the_choice_to_where_drawing_left_it(vocab: Vocab, fields: dict[str, object]) -> None:
    logits = logits_of(vocab, *FOUR)
    candidates = Candidates(vocab.n_tokens)

    def chain() -> SamplerChain:
        return SamplerChain(Sampling(**{**OFF, "seed": 3, **fields}), vocab, 512)  # type: ignore[arg-type]  # passed on

    def pick(one: SamplerChain) -> int:
        candidates.fill(logits)
        one.apply(candidates)
        return candidates.selected

    drawn, skipped = chain(), chain()
    for _ in range(10):
        pick(drawn)
    skipped.skip(candidates, 10)
    assert [pick(drawn) for _ in range(20)] == [pick(skipped) for _ in range(20)]
    drawn.close()
    skipped.close()


def test_an_unknown_sampler_is_an_error(vocab: Vocab) -> None:
    with pytest.raises(ValueError, match="nonsense"):
        SamplerChain(Sampling(samplers=("nonsense",)), vocab, 512)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_greedy_chains_that_pick_the_largest_do(vocab: Vocab, data: st.DataObject) -> None:
    sampling = Sampling(
        temperature=0,
        top_k=data.draw(st.sampled_from([0, 1, 40])),
        top_p=data.draw(st.sampled_from([0.1, 0.95, 1.0])),
        min_p=data.draw(st.sampled_from([0.0, 0.05, 1.0])),
        top_n_sigma=data.draw(st.sampled_from([-1.0, 0.0, 1.0])),
    )
    assert picks_largest(sampling)
    seed = data.draw(st.integers(0, 10**6))
    logits = np.random.default_rng(seed).normal(size=vocab.n_tokens).astype(np.float32)
    chain = SamplerChain(sampling, vocab, 512)
    candidates = Candidates(vocab.n_tokens)
    candidates.fill(logits)
    chain.apply(candidates)
    assert candidates.selected == int(logits.argmax())
    chain.close()


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 0.1},
        {"logit_bias": ((1, 1.0),)},
        {"repeat_penalty": 1.1},
        {"dry_multiplier": 0.8},
        {"typical_p": 0.9},
        {"xtc_probability": 0.5},
        {"mirostat": 1},
    ],
)
def test_chains_that_may_reorder_are_run(fields: dict[str, object]) -> None:
    assert not picks_largest(Sampling(**{"temperature": 0.0, **fields}))  # type: ignore[arg-type]  # passed on
