"""Drafts change what an answer costs, and nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from msgspec.structs import replace

from puna.config import ScaledFile
from puna.engine.ngrams import Drafter, Guess
from puna.engine.sequence import Sequence as EngineSequence
from puna.llama.context import NoRoom
from puna.speculation import Speculation
from puna.types import Constraint, Sampling
from tests import tiny
from tests.engine.checking import assert_plausible
from tests.engine.driver import GREEDY, Answer, Driver

LAYOUTS = ["split", "unified"]
FREE = Sampling(temperature=0, ignore_eos=True)
MAP = Speculation(type="ngram-map", n_max=8)
KINDS = [Speculation(type=kind, n_max=8) for kind in ("ngram-simple", "ngram-map", "ngram-cache")]


@pytest.fixture(scope="module", params=LAYOUTS)
def driver(request: pytest.FixtureRequest, tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    vocab = tiny.spm_vocab()
    says = (vocab.id("A"), vocab.id("a"))
    file = tiny.write_lora(tmp_path_factory.mktemp("lora") / "a.gguf", seed=1, says=says, n_vocab=len(vocab))
    made = Driver(
        tiny_llama, layout=request.param, draft_adaptive=False, lora=(ScaledFile(str(file)),), lora_init_without_apply=True
    )
    yield made
    assert made.warnings == []


class Oracle:
    """Guesses from a text that it was told, wrong at every so many-th token."""

    def __init__(self, answer: Sequence[int], n_prompt: int, wrong_at: int = 0) -> None:
        self._answer = [token if not wrong_at or (at + 1) % wrong_at else token + 1 for at, token in enumerate(answer)]
        self._at = -n_prompt

    def feed(self, tokens: Sequence[int]) -> None:
        self._at += len(tokens)

    def guess(self, most: int) -> Guess | None:
        tokens = tuple(self._answer[self._at : self._at + most])
        return Guess(tokens, 3) if tokens else None


def oracle(answer: Sequence[int], n_prompt: int, wrong_at: int, _sequence: EngineSequence) -> Oracle:
    return Oracle(answer, n_prompt, wrong_at)


@pytest.fixture
def use(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[EngineSequence], Drafter]], None]:
    return lambda make: monkeypatch.setattr(driver.engine._drafting, "_make", make)


def counts(answer: Answer) -> tuple[int, int]:
    assert answer.timings is not None
    return answer.timings.draft_n, answer.timings.draft_n_accepted


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.type)
def test_greedy_answers_are_those_of_the_model(driver: Driver, kind: Speculation) -> None:
    prompt = driver.tokens("one two three " * 6)
    answer = driver.ask(prompt, max_tokens=60, sampling=FREE, speculation=kind)
    assert (len(answer.tokens), answer.end) == (60, "limit")
    assert_plausible(driver, prompt, answer)


def test_repetition_takes_fewer_steps(driver: Driver) -> None:
    bias = tuple((driver.vocab.tokenize(letter, add_special=False, parse_special=False)[-1], 50.0) for letter in "ab")
    sampling = Sampling(temperature=0, logit_bias=bias, ignore_eos=True, repeat_penalty=1.0)
    answer = driver.ask("ab" * 20, max_tokens=60, sampling=sampling, speculation=MAP)
    assert len(answer.tokens) == 60
    drafted, accepted = counts(answer)
    assert 0 < accepted <= drafted
    assert len(answer.steps) == 60 - accepted


@pytest.mark.parametrize("wrong_at", [0, 1, 2, 3, 5, 8])
@pytest.mark.parametrize("hot", [False, True])
def test_wherever_a_draft_goes_wrong_the_text_is_right(
    driver: Driver, use: Callable[..., None], wrong_at: int, hot: bool
) -> None:
    """A grammar leaves the choice of every other letter, so that few tokens are forced and the text is known all the same."""
    sampling = Sampling(temperature=1, seed=5, top_k=0, top_p=1, min_p=0) if hot else GREEDY
    grammar = Constraint("gbnf", 'root ::= ("a" [xy] "c" [xy]){8} "end"')
    wish = {"sampling": sampling, "constraint": grammar, "cache_prompt": False}
    prompt = driver.tokens("go")
    plain = driver.ask(prompt, **wish)
    use(lambda _sequence: Oracle(plain.tokens, len(prompt), wrong_at))
    drafted = driver.ask(prompt, speculation=MAP, **wish)
    assert (driver.text(drafted), drafted.end) == (driver.text(plain), plain.end)
    drafted_right = counts(drafted)[1] > 0
    assert drafted_right == (wrong_at not in (1, 2))
    assert drafted_right == (len(drafted.steps) < len(plain.steps))


def test_samples_keep_the_distribution(driver: Driver, use: Callable[..., None]) -> None:
    """Pearson's test of 240 answers of two tokens out of two each, with drafts that are right now and then."""
    sampling = Sampling(temperature=1.5, top_k=2, top_p=1, min_p=0, n_probs=2, post_sampling_probs=True, ignore_eos=True)
    prompt = driver.tokens("a choice")
    first = driver.ask((*prompt, 40), max_tokens=1, sampling=sampling).probs[0]
    expected: dict[tuple[int, int], float] = {}
    for token, chance in first.top:
        second = driver.ask((*prompt, 40, token), max_tokens=1, sampling=sampling).probs[0]
        expected |= {(token, then): chance * share for then, share in second.top}
    assert len(expected) == 4
    n = 240
    likely, rare = max(expected, key=lambda pair: expected[pair]), min(expected, key=lambda pair: expected[pair])
    use(lambda sequence: Oracle([40, *(rare if sequence.generation.sampling.seed % 2 else likely)], len(prompt)))
    samplings = [Sampling(temperature=1.5, top_k=2, top_p=1, min_p=0, seed=seed, ignore_eos=True) for seed in range(n)]
    # `produced` makes the first token known, so that the draft stands for the next two
    answers = [driver.submit(prompt, produced=(40,), max_tokens=4, sampling=one, speculation=MAP) for one in samplings]
    driver.run()
    assert {len(answer.tokens) for answer in answers} == {3}
    assert 0 < sum(counts(answer)[1] for answer in answers) < sum(counts(answer)[0] for answer in answers)
    seen = Counter((answer.tokens[0], answer.tokens[1]) for answer in answers)
    assert set(seen) <= set(expected)
    chi = sum((seen[pair] - n * share) ** 2 / (n * share) for pair, share in expected.items())
    assert chi < 16.3, (seen, expected)  # 1 in 1,000 by chance, with 3 degrees of freedom


def test_the_same_seed_draws_the_same_numbers(driver: Driver, use: Callable[..., None]) -> None:
    penalised = Sampling(temperature=1, ignore_eos=True, repeat_penalty=1.3, dry_multiplier=0.8)
    changes: list[dict[str, float]] = [{}, {"mirostat": 2}, {"xtc_probability": 0.5, "xtc_threshold": 0.01}]
    for seed, change in product(range(2), changes):
        sampling = replace(penalised, seed=seed, **change)
        wish = {"max_tokens": 24, "sampling": sampling, "cache_prompt": False}
        prompt = driver.tokens("draw")
        plain = driver.ask(prompt, **wish)
        use(partial(oracle, plain.tokens, len(prompt), 5))
        drafted = driver.ask(prompt, speculation=MAP, **wish)
        assert drafted.tokens == plain.tokens
        assert counts(drafted)[1] > 0


def test_probabilities_come_for_every_token(driver: Driver, use: Callable[..., None]) -> None:
    sampling = Sampling(temperature=0, ignore_eos=True, n_probs=3)
    prompt = driver.tokens("odds")
    plain = driver.ask(prompt, max_tokens=20, sampling=sampling)
    use(lambda _sequence: Oracle(plain.tokens, len(prompt), 4))
    drafted = driver.ask(prompt, max_tokens=20, sampling=sampling, speculation=MAP)
    assert counts(drafted)[1] > 0
    assert [prob.id for prob in drafted.probs] == drafted.tokens == plain.tokens
    for one, other in zip(drafted.probs, plain.probs, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=0.01)


@pytest.mark.parametrize("limit", [1, 2, 3, 9, 10])
def test_max_tokens_is_exact(driver: Driver, use: Callable[..., None], limit: int) -> None:
    prompt = driver.tokens("count")
    plain = driver.ask(prompt, max_tokens=12, sampling=FREE)
    use(lambda _sequence: Oracle(plain.tokens, len(prompt)))
    answer = driver.ask(prompt, max_tokens=limit, sampling=FREE, speculation=MAP)
    assert (answer.tokens, answer.end) == (plain.tokens[:limit], "limit")


def test_an_end_within_a_draft_is_the_end(driver: Driver, use: Callable[..., None]) -> None:
    prompt = driver.tokens("stop")
    grammar = Constraint("gbnf", "root ::= [ab] [ab] [ab]")
    plain = driver.ask(prompt, constraint=grammar)
    use(lambda _sequence: Oracle([*plain.tokens, 40, 41, 42, 43], len(prompt)))
    answer = driver.ask(prompt, constraint=grammar, speculation=MAP)
    assert (answer.tokens, answer.end) == (plain.tokens, "eos")
    again = driver.ask((*prompt, *plain.tokens), max_tokens=1)
    assert again.cached <= len(prompt) + len(plain.tokens) - 1


def test_the_context_is_a_limit(driver: Driver) -> None:
    n_ctx = driver.facts.n_ctx
    prompt = tuple(5 + at % 7 for at in range(n_ctx - 9))
    answer = driver.ask(prompt, sampling=FREE, speculation=MAP)
    assert (len(answer.tokens), answer.end) == (9, "limit")


def test_many_side_by_side_and_aborts(driver: Driver) -> None:
    texts = ["tick tock " * n for n in (3, 9, 5, 12, 7, 4)]
    answers = [driver.submit(f"{i}", force=text, speculation=KINDS[i % 3]) for i, text in enumerate(texts)]
    gone = driver.submit("gone", max_tokens=200, sampling=FREE, speculation=MAP)
    free = [driver.submit(f"free {i}", max_tokens=30, sampling=FREE, speculation=MAP) for i in range(3)]
    driver.run(until=lambda: len(gone.tokens) > 20)
    driver.abort(gone)
    driver.run()
    assert [driver.text(answer) for answer in answers] == texts
    for i, answer in enumerate(free):
        assert_plausible(driver, driver.tokens(f"free {i}"), answer)


def test_what_was_said_is_reused_afterwards(driver: Driver, use: Callable[..., None]) -> None:
    prompt = driver.tokens("remember this")
    plain = driver.ask(prompt, max_tokens=20, sampling=FREE, cache_prompt=False)
    use(lambda _sequence: Oracle(plain.tokens, len(prompt), 3))
    drafted = driver.ask(prompt, max_tokens=20, sampling=FREE, speculation=MAP)
    turn = (*prompt, *drafted.tokens, 40, 41)
    following = driver.ask(turn, max_tokens=10, sampling=FREE)
    assert following.cached >= len(prompt) + 18
    assert_plausible(driver, turn, following)


@pytest.mark.parametrize("n_before", [1, 4, 11])
def test_a_restarted_answer_goes_on_the_same(driver: Driver, use: Callable[..., None], n_before: int) -> None:
    sampling = Sampling(temperature=1, seed=3, ignore_eos=True, frequency_penalty=0.5)
    prompt = driver.tokens("again")
    whole = driver.ask(prompt, max_tokens=20, sampling=sampling, cache_prompt=False)
    use(lambda _sequence: Oracle(whole.tokens, len(prompt), 6))
    before = tuple(whole.tokens[:n_before])
    rest = driver.ask(prompt, max_tokens=20, sampling=sampling, speculation=MAP, produced=before)
    assert [*before, *rest.tokens] == whole.tokens


def test_adapters(driver: Driver, use: Callable[..., None]) -> None:
    prompt = driver.tokens("with an adapter")
    wish = {"max_tokens": 20, "sampling": FREE, "lora": ((0, 1.0),)}
    plain = driver.ask(prompt, **wish)
    use(lambda _sequence: Oracle(plain.tokens, len(prompt), 4))
    beside = driver.submit("without", max_tokens=20, sampling=FREE, speculation=MAP)
    drafted = driver.ask(prompt, speculation=MAP, **wish)
    assert drafted.tokens == plain.tokens
    assert len(beside.tokens) == 20


def test_an_adapter_that_overflows_ends_its_request_alone(driver: Driver) -> None:
    fine = driver.submit("fine", max_tokens=30, sampling=FREE, speculation=MAP)
    bad = driver.submit("ab" * 20, max_tokens=30, sampling=FREE, speculation=MAP, lora=((0, 1e38),))
    driver.run()
    assert bad.end == "error"
    assert_plausible(driver, driver.tokens("fine"), fine)


@pytest.mark.parametrize("wish", [{"deterministic": True}, {"speculation": Speculation(type="ngram-map", n_max=0)}])
def test_no_drafts_where_none_are_wanted(driver: Driver, wish: dict[str, object]) -> None:
    if driver.facts.layout == "unified" and "deterministic" in wish:
        pytest.skip("deterministic requests need the split layout")
    answer = driver.ask("ab" * 30, max_tokens=30, sampling=FREE, **{"speculation": MAP, **wish})
    assert counts(answer) == (0, 0)


def test_least_lengths_and_most(driver: Driver, use: Callable[..., None]) -> None:
    prompt = driver.tokens("limits")
    plain = driver.ask(prompt, max_tokens=30, sampling=FREE)
    use(lambda _sequence: Oracle(plain.tokens, len(prompt)))
    two = driver.ask(prompt, max_tokens=30, sampling=FREE, speculation=Speculation(type="ngram-map", n_max=2))
    assert max(b - a for a, b in zip([0, *two.steps], two.steps, strict=False)) == 3
    least = Speculation(type="ngram-map", n_max=20, n_min=20)
    drafted, _ = counts(driver.ask(prompt, max_tokens=30, sampling=FREE, speculation=least))
    assert drafted == 20


def test_counters_by_place(driver: Driver, use: Callable[..., None]) -> None:
    prompt = driver.tokens("places")
    plain = driver.ask(prompt, max_tokens=30, sampling=FREE)
    before = driver.stats
    use(lambda _sequence: Oracle(plain.tokens, len(prompt), 3))
    drafted, accepted = counts(driver.ask(prompt, max_tokens=30, sampling=FREE, speculation=MAP))
    assert sum(driver.stats.drafted) - sum(before.drafted) == drafted
    assert sum(driver.stats.draft_accepted) - sum(before.draft_accepted) == accepted
    assert list(driver.stats.drafted) == sorted(driver.stats.drafted, reverse=True)
    assert all(a <= b for a, b in zip(driver.stats.draft_accepted, driver.stats.drafted, strict=True))


def test_no_room_for_a_draft_is_no_reason_to_stop(
    driver: Driver, use: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = driver.tokens("no room")
    plain = driver.ask(prompt, max_tokens=10, sampling=FREE)
    use(lambda _sequence: Oracle(plain.tokens, len(prompt)))
    run = driver.engine._runner.run

    def refuse(plan: object) -> object:
        if plan.n_drafted:  # type: ignore[attr-defined]  # a plan
            raise NoRoom("full")
        return run(plan)  # type: ignore[arg-type]  # a plan

    monkeypatch.setattr(driver.engine._runner, "run", refuse)
    answer = driver.ask(prompt, max_tokens=10, sampling=FREE, speculation=MAP)
    assert answer.tokens == plain.tokens
    assert counts(answer) == (0, 0)


def test_memory_that_cannot_be_cut_gets_no_drafts(tiny_mamba: Path) -> None:
    driver = Driver(tiny_mamba, draft_adaptive=False)
    answer = driver.ask("ab" * 30, max_tokens=20, sampling=FREE, speculation=MAP)
    assert len(answer.tokens) == 20
    assert counts(answer) == (0, 0)


def test_shifted_text(tiny_llama: Path) -> None:
    driver = Driver(tiny_llama, n_ctx=64, n_slots=1, draft_adaptive=False)
    answer = driver.ask("ab" * 10, max_tokens=150, sampling=FREE, speculation=MAP, context_shift=True)
    assert (len(answer.tokens), answer.truncated) == (150, True)
    assert driver.warnings == []


def test_what_does_not_pay_is_left(tiny_llama: Path) -> None:
    """Steps of tiny models take no time to speak of, so their cost is made up here."""
    driver = Driver(tiny_llama)
    policy = driver.engine._drafting.policy
    policy.observe(1, 0, 1.0)
    for _ in range(100):
        policy.observe(1, 8, 10.0)
    policy.observe = lambda *_observed: None  # type: ignore[method-assign]  # keeps what it was told
    answer = driver.ask("ab" * 30, max_tokens=60, sampling=FREE, speculation=MAP)
    assert counts(answer) == (0, 0)
