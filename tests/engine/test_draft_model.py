"""A draft model guesses, and changes nothing but what an answer costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from puna.config import ScaledFile
from puna.engine.draft_policy import DraftPolicy
from puna.errors import StartupError
from puna.llama.context import Context, DecodeError
from puna.speculation import SpecType, Speculation
from puna.types import Constraint, Sampling
from tests import tiny
from tests.engine.checking import assert_plausible
from tests.engine.driver import GREEDY, Answer, Driver

FREE = Sampling(temperature=0, ignore_eos=True)
DRAFT = Speculation(type="draft", n_max=6)


@pytest.fixture(scope="module")
def other_llama(tiny_folder: Path) -> Path:
    """Another model with the same vocabulary, which agrees with the first one by chance only."""
    return tiny.write_llama(tiny_folder / "other-llama.gguf", seed=7, n_layer=1)


@pytest.fixture(scope="module")
def adapter(tiny_folder: Path) -> Path:
    vocab = tiny.spm_vocab()
    says = (vocab.id("A"), vocab.id("a"))
    return tiny.write_lora(tiny_folder / "draft-lora.gguf", seed=1, says=says, n_vocab=len(vocab))


@pytest.fixture(scope="module", params=["split", "unified"])
def same(request: pytest.FixtureRequest, tiny_llama: Path, adapter: Path) -> Iterator[Driver]:
    """The draft model is the model itself."""
    settings = {"lora": (ScaledFile(str(adapter)),), "lora_init_without_apply": True}
    driver = Driver(tiny_llama, layout=request.param, draft_model=str(tiny_llama), draft_adaptive=False, **settings)
    yield driver
    assert driver.warnings == []
    assert driver.engine._drafting._model is not None
    assert driver.engine._drafting._model._held == {}  # nothing is left of those that have ended


@pytest.fixture(scope="module")
def other(tiny_llama: Path, other_llama: Path) -> Iterator[Driver]:
    driver = Driver(tiny_llama, draft_model=str(other_llama), draft_adaptive=False)
    yield driver
    assert driver.warnings == []


def freeze(policy: DraftPolicy) -> None:
    """Let a policy keep what it was told of costs: steps of tiny models take no time to speak of."""
    policy.observe = lambda *_observed: None  # type: ignore[method-assign]  # for this test
    policy.observe_guessing = lambda *_observed: None  # type: ignore[method-assign]  # for this test


def counts(answer: Answer) -> tuple[int, int]:
    assert answer.timings is not None
    return answer.timings.draft_n, answer.timings.draft_n_accepted


def test_a_draft_model_like_the_model_is_right(same: Driver) -> None:
    prompt = same.tokens("one two three")
    plain = same.ask(prompt, max_tokens=50, sampling=FREE, cache_prompt=False)
    answer = same.ask(prompt, max_tokens=50, sampling=FREE, speculation=DRAFT)
    assert answer.tokens == plain.tokens
    drafted, accepted = counts(answer)
    assert accepted == drafted > 30
    assert len(answer.steps) == 50 - accepted
    assert max(b - a for a, b in pairwise([0, *answer.steps])) == 7


def test_another_one_is_seldom_right_and_does_no_harm(other: Driver) -> None:
    prompt = other.tokens("one two three")
    plain = other.ask(prompt, max_tokens=50, sampling=FREE, cache_prompt=False)
    answer = other.ask(prompt, max_tokens=50, sampling=FREE, speculation=DRAFT)
    assert answer.tokens == plain.tokens
    drafted, accepted = counts(answer)
    assert drafted > 100
    assert accepted < 0.2 * drafted
    assert_plausible(other, prompt, answer)


def test_it_is_off_by_itself_where_it_does_not_pay(tiny_llama: Path, other_llama: Path) -> None:
    driver = Driver(tiny_llama, draft_model=str(other_llama))
    policy = driver.engine._drafting.policy
    policy.observe(1, 0, 1.0)
    policy.observe_guessing(1, 0.1)
    for _ in range(20):
        policy.observe(1, 6, 3.0)
    freeze(policy)
    first = driver.ask("go on", max_tokens=60, sampling=FREE, speculation=DRAFT)
    assert 0 < counts(first)[0] < 60
    second = driver.ask("and on", max_tokens=100, sampling=FREE, speculation=DRAFT)
    assert counts(second)[0] <= 4  # a new request need not find out again


def test_it_is_on_where_it_pays(tiny_llama: Path) -> None:
    driver = Driver(tiny_llama, draft_model=str(tiny_llama))
    policy = driver.engine._drafting.policy
    policy.observe(1, 0, 1.0)
    policy.observe_guessing(1, 0.1)
    policy.observe(1, 6, 1.5)
    freeze(policy)
    answer = driver.ask("go on", max_tokens=60, sampling=FREE, speculation=DRAFT)
    assert counts(answer)[1] == counts(answer)[0] > 40


@pytest.mark.parametrize("hot", [False, True])
def test_grammars_and_penalties(same: Driver, other: Driver, hot: bool) -> None:
    grammar = Constraint("gbnf", 'root ::= ("a" [xy] "c" [xy]){8} "end"')
    sampling = Sampling(temperature=1, seed=5, repeat_penalty=1.2) if hot else GREEDY
    wish = {"sampling": sampling, "constraint": grammar, "cache_prompt": False}
    plain = same.ask("go", **wish)
    for driver in (same, other):
        drafted = driver.ask("go", speculation=DRAFT, **wish)
        assert (driver.text(drafted), drafted.end) == (driver.text(plain), plain.end)
        assert counts(drafted)[0] > 0


def test_the_same_seed_draws_the_same_numbers(same: Driver) -> None:
    for seed in range(3):
        sampling = Sampling(temperature=0.7, seed=seed, ignore_eos=True, repeat_penalty=1.3)
        plain = same.ask("draw", max_tokens=24, sampling=sampling, cache_prompt=False)
        drafted = same.ask("draw", max_tokens=24, sampling=sampling, speculation=DRAFT)
        assert drafted.tokens == plain.tokens
        assert 0 < counts(drafted)[1] <= counts(drafted)[0]


def test_samples_keep_the_distribution(same: Driver) -> None:
    """Pearson's test of 240 answers of two tokens out of two each; greedy drafts stand for the likelier one."""
    sampling = Sampling(temperature=1.5, top_k=2, top_p=1, min_p=0, n_probs=2, post_sampling_probs=True, ignore_eos=True)
    prompt = same.tokens("a choice")
    expected: dict[tuple[int, int], float] = {}
    for token, chance in same.ask((*prompt, 40), max_tokens=1, sampling=sampling).probs[0].top:
        second = same.ask((*prompt, 40, token), max_tokens=1, sampling=sampling).probs[0]
        expected |= {(token, then): chance * share for then, share in second.top}
    n = 240
    samplings = [Sampling(temperature=1.5, top_k=2, top_p=1, min_p=0, seed=seed, ignore_eos=True) for seed in range(n)]
    answers = [same.submit(prompt, produced=(40,), max_tokens=4, sampling=one, speculation=DRAFT) for one in samplings]
    same.run()
    drafted, accepted = (sum(counts(answer)[i] for answer in answers) for i in (0, 1))
    assert 0.2 * drafted < accepted < drafted
    seen = Counter((answer.tokens[0], answer.tokens[1]) for answer in answers)
    assert set(seen) <= set(expected)
    chi = sum((seen[pair] - n * share) ** 2 / (n * share) for pair, share in expected.items())
    assert chi < 16.3, (seen, expected)  # 1 in 1,000 by chance, with 3 degrees of freedom


def test_probabilities_come_for_every_token(same: Driver) -> None:
    sampling = Sampling(temperature=0, ignore_eos=True, n_probs=3)
    plain = same.ask("odds", max_tokens=20, sampling=sampling)
    drafted = same.ask("odds", max_tokens=20, sampling=sampling, speculation=DRAFT)
    assert counts(drafted)[1] > 0
    assert [prob.id for prob in drafted.probs] == drafted.tokens == plain.tokens
    for one, another in zip(drafted.probs, plain.probs, strict=True):
        assert one.logprob == pytest.approx(another.logprob, abs=0.01)


def test_several_at_once_share_a_draft_batch(same: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    assert same.engine._drafting._model is not None
    context = same.engine._drafting._model._context
    rows: list[int] = []
    decode = Context.decode

    def note(self: Context, batch: object) -> None:
        if self is context:
            rows.append(batch.n)  # type: ignore[attr-defined]  # a batch
        decode(self, batch)  # type: ignore[arg-type]  # the same

    monkeypatch.setattr(Context, "decode", note)
    prompts = [same.tokens("a common beginning of some length, then " + word) for word in ("one", "two", "three", "four")]
    plain = [same.ask(prompt, max_tokens=30, sampling=FREE) for prompt in prompts]
    assert rows == []  # nothing is read for those that do not draft
    answers = [same.submit(prompt, max_tokens=30, sampling=FREE, speculation=DRAFT) for prompt in prompts]
    gone = same.submit("gone", max_tokens=200, sampling=FREE, speculation=DRAFT)
    same.run(until=lambda: len(gone.tokens) > 8)
    same.abort(gone)
    same.run()
    assert [answer.tokens for answer in answers] == [answer.tokens for answer in plain]
    assert sum(n == 4 for n in rows) > 10
    assert sum(rows) < 2 * sum(len(prompt) + 30 for prompt in prompts)  # what is known is not read again


def test_a_restarted_answer_and_the_next_turn_go_on_the_same(same: Driver) -> None:
    prompt = same.tokens("again")
    sampling = Sampling(temperature=1, seed=3, ignore_eos=True, frequency_penalty=0.5)
    whole = same.ask(prompt, max_tokens=20, sampling=sampling, cache_prompt=False)
    before = tuple(whole.tokens[:7])
    rest = same.ask(prompt, max_tokens=20, sampling=sampling, speculation=DRAFT, produced=before)
    assert [*before, *rest.tokens] == whole.tokens
    turn = (*prompt, *whole.tokens, 40, 41)
    following = same.ask(turn, max_tokens=10, sampling=FREE, speculation=DRAFT)
    assert following.cached >= len(prompt) + 18
    assert_plausible(same, turn, following)


def test_adapters_of_the_model_are_not_the_draft_models(same: Driver) -> None:
    wish = {"max_tokens": 20, "sampling": FREE, "lora": ((0, 1.0),)}
    plain = same.ask("with an adapter", **wish)
    beside = same.submit("without", max_tokens=20, sampling=FREE, speculation=DRAFT)
    drafted = same.ask("with an adapter", speculation=DRAFT, **wish)
    assert drafted.tokens == plain.tokens
    assert counts(drafted)[0] > 0
    assert len(beside.tokens) == 20


def test_limits_of_requests(same: Driver) -> None:
    least = Speculation(type="draft", n_max=20, n_min=20)
    assert counts(same.ask("limits", max_tokens=30, sampling=FREE, speculation=least))[0] == 20
    sure = Speculation(type="draft", n_max=6, p_min=1.0)
    assert counts(same.ask("limits", max_tokens=30, sampling=FREE, speculation=sure))[0] == 0
    off = Speculation(type="draft", n_max=0)
    assert counts(same.ask("limits", max_tokens=30, sampling=FREE, speculation=off))[0] == 0
    assert counts(same.ask("limits", max_tokens=30, sampling=FREE, speculation=Speculation(type="ngram-map")))[0] < 20


def test_auto_asks_the_model_where_the_text_tells_nothing(same: Driver) -> None:
    answer = same.ask("zq wv", max_tokens=40, sampling=FREE, speculation=Speculation(type="auto", n_max=6))
    assert counts(answer)[1] > 20


def test_long_prompts_are_read_in_pieces_and_the_context_grows(tiny_llama: Path) -> None:
    driver = Driver(tiny_llama, n_ctx=2048, n_slots=2, draft_model=str(tiny_llama), draft_adaptive=False)
    assert driver.engine._drafting._model is not None
    prompts = [tuple(5 + (at * at + i) % 90 for at in range(1050)) for i in range(2)]
    answers = [driver.submit(prompt, max_tokens=24, sampling=FREE, speculation=DRAFT) for prompt in prompts]
    driver.run()
    for prompt, answer in zip(prompts, answers, strict=True):
        assert counts(answer)[1] > 5
        assert_plausible(driver, prompt, answer)
    assert driver.engine._drafting._model._cells == 4096
    assert driver.warnings == []


def test_texts_beyond_its_context_get_no_drafts(tiny_llama: Path) -> None:
    driver = Driver(tiny_llama, draft_model=str(tiny_llama), draft_adaptive=False, draft_n_ctx=40)
    answer = driver.ask(tuple(range(10, 30)), max_tokens=60, sampling=FREE, speculation=DRAFT)
    assert len(answer.tokens) == 60
    assert 5 < counts(answer)[0] <= 20


def test_shifted_text(tiny_llama: Path) -> None:
    driver = Driver(tiny_llama, n_ctx=64, n_slots=1, draft_model=str(tiny_llama), draft_adaptive=False)
    answer = driver.ask("ab" * 10, max_tokens=150, sampling=FREE, speculation=DRAFT, context_shift=True)
    assert (len(answer.tokens), answer.truncated) == (150, True)
    assert counts(answer)[1] > 50
    assert driver.warnings == []


def test_sliding_windows_on_both_sides(tiny_gemma3: Path) -> None:
    driver = Driver(tiny_gemma3, draft_model=str(tiny_gemma3), draft_adaptive=False)
    bias = tuple((driver.vocab.tokenize(letter, add_special=False, parse_special=False)[-1], 50.0) for letter in "ab")
    few = Sampling(temperature=0, logit_bias=bias, ignore_eos=True)
    prompt = driver.tokens("a window of some tokens " * 5)
    plans: list[tuple[Sampling, SpecType, bool]] = [(FREE, "draft", True), (few, "draft", False), (few, "ngram-map", True)]
    for sampling, kind, right in plans:
        answer = driver.ask(prompt, max_tokens=80, sampling=sampling, speculation=Speculation(type=kind, n_max=6))
        drafted, accepted = counts(answer)
        assert accepted > 10 if right else accepted < drafted
        if sampling is FREE:
            assert_plausible(driver, prompt, answer)
    assert driver.warnings == []


def test_a_draft_model_that_fails_begins_anew(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver(tiny_llama, draft_model=str(tiny_llama), draft_adaptive=False)
    assert driver.engine._drafting._model is not None
    context, decode = driver.engine._drafting._model._context, Context.decode
    plain = driver.ask("fails", max_tokens=30, sampling=FREE)
    n = 0

    def fail(self: Context, batch: object) -> None:
        nonlocal n
        n += self is context
        if self is context and n == 5:
            raise DecodeError("out of order")
        decode(self, batch)  # type: ignore[arg-type]  # a batch

    monkeypatch.setattr(Context, "decode", fail)
    answer = driver.ask("fails", max_tokens=30, sampling=FREE, speculation=DRAFT)
    assert answer.tokens == plain.tokens
    assert counts(answer)[1] > 10
    assert [line for line in driver.warnings if "out of order" in line] == driver.warnings != []


def test_models_that_cannot_draft_are_refused(
    tiny_llama: Path, tiny_llama_bpe: Path, tiny_mamba: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    cases = [
        (tiny_llama, tiny_llama_bpe, "another vocabulary.*kind SPM, the draft model's BPE"),
        (tiny_llama, tiny_mamba, "cannot guess: its memory cannot be cut"),
        (tiny_mamba, tiny_llama, "cannot help .*memory cannot be cut"),
        (tiny_llama, tiny_bert, "does not generate text"),
        (tiny_bert, tiny_llama, "has nothing to do"),
        (tiny_llama, tmp_path / "none.gguf", "none.gguf"),
    ]
    for model, draft, reason in cases:
        with pytest.raises(StartupError, match=reason):
            Driver(model, draft_model=str(draft))
