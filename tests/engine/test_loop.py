"""The engine loop on tiny models: concurrency, limits, reuse, aborts, faults."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from puna.types import Constraint, Sampling
from tests.engine.driver import Driver

LAYOUTS = ["split", "unified"]
SYSTEM = "You are a careful helper who answers in few words. " * 4


@pytest.fixture(scope="module", params=LAYOUTS)
def driver(request: pytest.FixtureRequest, tiny_llama: Path) -> Iterator[Driver]:
    made = Driver(tiny_llama, layout=request.param)
    yield made
    assert made.warnings == []


def test_many_more_requests_than_slots_all_end_with_their_own_text(driver: Driver) -> None:
    texts = [f"answer {i} 😀 done" for i in range(13)]
    answers = [driver.submit(f"question {i}", force=text) for i, text in enumerate(texts)]
    driver.run()
    assert [driver.text(answer) for answer in answers] == texts
    assert {answer.end for answer in answers} == {"eos"}


def test_finishing_in_any_order_does_not_mix_sequences(driver: Driver) -> None:
    """Seats move down when lower ones become free."""
    lengths = [3, 40, 7, 60, 20, 5, 33]
    answers = [driver.submit(f"{i}?", force="abc" * n) for i, n in enumerate(lengths)]
    driver.run()
    assert [driver.text(answer) for answer in answers] == ["abc" * n for n in lengths]


@pytest.mark.parametrize("limit", [1, 2, 3, 17])
def test_max_tokens_is_exact(driver: Driver, limit: int) -> None:
    answer = driver.ask("count", max_tokens=limit, sampling=Sampling(temperature=0, ignore_eos=True))
    assert (len(answer.tokens), answer.end) == (limit, "limit")


def test_zero_tokens_only_reads_the_prompt(driver: Driver) -> None:
    prompt = driver.tokens("read this into the cache, please")
    answer = driver.ask(prompt, max_tokens=0)
    assert (answer.tokens, answer.end) == ([], "limit")
    assert driver.ask(prompt, max_tokens=1).cached == len(prompt) - 1


def test_the_context_is_a_limit(driver: Driver) -> None:
    prompt = tuple(range(300, 300 + driver.facts.n_ctx - 5))
    answer = driver.ask(tuple(t % 200 + 5 for t in prompt), sampling=Sampling(temperature=0, ignore_eos=True))
    assert (len(answer.tokens), answer.end) == (5, "limit")


def test_min_tokens_and_bans(driver: Driver) -> None:
    free = driver.ask("ban", max_tokens=8, sampling=Sampling(temperature=0, ignore_eos=True))
    first = free.tokens[0]
    banned = Sampling(temperature=0, ignore_eos=True, logit_bias=((first, float("-inf")),))
    assert first not in driver.ask("ban", max_tokens=50, sampling=banned).tokens
    ends = tuple((token, 100.0) for token in driver.vocab.end_tokens)
    assert driver.ask("ban", max_tokens=9, sampling=Sampling(temperature=0, logit_bias=ends)).tokens == []
    held = Sampling(temperature=0, logit_bias=ends, min_tokens=4)
    assert len(driver.ask("ban", max_tokens=9, sampling=held).tokens) == 4


def test_probabilities(driver: Driver) -> None:
    answer = driver.ask("odds", max_tokens=6, sampling=Sampling(temperature=0, n_probs=5, ignore_eos=True))
    assert [prob.id for prob in answer.probs] == answer.tokens
    for prob in answer.probs:
        values = [value for _, value in prob.top]
        assert len(prob.top) == 5
        assert values == sorted(values, reverse=True)
        assert prob.top[0] == (prob.id, prob.logprob)
        assert all(-1e39 < value <= 0 for value in values)
    after = Sampling(temperature=1, top_k=3, n_probs=5, post_sampling_probs=True, ignore_eos=True, seed=1)
    for prob in driver.ask("odds", max_tokens=6, sampling=after).probs:
        assert len(prob.top) <= 3
        assert sum(value for _, value in prob.top) == pytest.approx(1, abs=1e-5)
        assert prob.logprob in [pytest.approx(value) for _, value in prob.top]


def test_same_seed_same_text_and_other_seeds_differ(driver: Driver) -> None:
    def draw(seed: int) -> list[int]:
        hot = Sampling(temperature=2, top_k=0, top_p=1, min_p=0, seed=seed, ignore_eos=True)
        return driver.ask("roll the dice", max_tokens=20, sampling=hot, cache_prompt=False).tokens

    assert draw(1) == draw(1)
    assert len({tuple(draw(seed)) for seed in range(5)}) == 5


def test_a_conversation_is_read_once(driver: Driver) -> None:
    prompt = driver.tokens(SYSTEM + "first question")
    first = driver.ask(prompt, max_tokens=9, sampling=Sampling(temperature=0, ignore_eos=True))
    follow = (*prompt, *first.tokens, *driver.tokens(" second question"))
    second = driver.ask(follow, max_tokens=1)
    assert second.cached == len(prompt) + len(first.tokens) - 1  # the last token was chosen but never computed
    third = driver.ask(follow, max_tokens=1)
    assert third.read == 1


def test_a_private_request_neither_uses_nor_leaves_anything(driver: Driver) -> None:
    prompt = driver.tokens("a secret that nobody keeps " * 3)
    assert driver.ask(prompt, max_tokens=1, cache_prompt=False).cached == 0
    assert driver.ask(prompt, max_tokens=1, cache_prompt=False).cached == 0
    assert driver.ask(prompt, max_tokens=1).cached <= 1  # BOS alone may be shared


def test_requests_at_once_share_one_prefill(driver: Driver) -> None:
    prefix = driver.tokens("unseen shared beginning " * 10)
    before = driver.stats.prompt_tokens
    answers = [driver.submit((*prefix, 20 + i), force=f"text {i}") for i in range(4)]
    driver.run()
    assert driver.stats.prompt_tokens - before < len(prefix) + 4 * 3
    assert [driver.text(answer) for answer in answers] == [f"text {i}" for i in range(4)]


def test_when_the_leader_leaves_its_followers_go_on(driver: Driver) -> None:
    prefix = driver.tokens("another long beginning nobody has read " * 8)
    leader = driver.submit(prefix, sampling=Sampling(temperature=0, ignore_eos=True))
    follower = driver.submit((*prefix, 30), force="goes on")
    driver.step()
    driver.abort(leader)
    driver.run()
    assert driver.text(follower) == "goes on"
    assert leader.end == "none"


def test_aborts_take_effect_at_once_wherever_a_request_is(driver: Driver) -> None:
    running = [driver.submit(f"long {i}", sampling=Sampling(temperature=0, ignore_eos=True)) for i in range(4)]
    queued = driver.submit("queued")
    driver.run(until=lambda: all(answer.tokens for answer in running))
    for answer in (*running, queued):
        driver.abort(answer)
    counts = [len(answer.tokens) for answer in running]
    assert driver.engine.idle
    driver.step()
    assert [len(answer.tokens) for answer in running] == counts
    assert queued.tokens == []


def test_a_bad_grammar_ends_its_own_request_only(driver: Driver) -> None:
    bad = driver.submit("x", constraint=Constraint("gbnf", "root ::= nothing"))
    good = driver.submit("y", force="fine")
    driver.run()
    assert (bad.end, bad.tokens) == ("error", [])
    assert "nothing" in bad.error
    assert driver.text(good) == "fine"


def test_forced_text_takes_few_steps_and_probabilities_take_them_all(driver: Driver) -> None:
    text = "there is only one thing that can be said here"
    before = driver.stats.n_decode
    assert driver.text(driver.ask("say", force=text)) == text
    assert driver.stats.n_decode - before <= 5
    answer = driver.ask("say", force=text, sampling=Sampling(temperature=0, n_probs=1))
    assert driver.text(answer) == text
    assert [prob.id for prob in answer.probs] == answer.tokens


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_forced_tokens_respect_the_limit(driver: Driver, limit: int) -> None:
    answer = driver.ask("say", force="one long forced text", max_tokens=limit)
    assert (len(answer.tokens), answer.end) == (limit, "limit")


def test_a_resumed_draw_counts_only_tokens_that_were_drawn(driver: Driver) -> None:
    grammar = Constraint("gbnf", 'root ::= ("forced text " [0-9] [a-z])+')
    hot = Sampling(temperature=3, top_k=0, top_p=1, min_p=0, seed=11)
    whole = driver.ask("x", constraint=grammar, sampling=hot, max_tokens=60, cache_prompt=False)
    assert len(whole.steps) < len(whole.tokens)
    for cut in whole.steps[:-1]:
        done = tuple(whole.tokens[:cut])
        rest = driver.ask("x", constraint=grammar, sampling=hot, max_tokens=60, cache_prompt=False, produced=done)
        assert rest.tokens == whole.tokens[cut:], cut


def test_ignoring_the_end_cannot_break_a_grammar(driver: Driver) -> None:
    answer = driver.ask("x", force="the end", sampling=Sampling(temperature=0, ignore_eos=True, min_tokens=50))
    assert (driver.text(answer), answer.end) == ("the end", "eos")


def test_progress_is_reported_up_to_the_end(driver: Driver) -> None:
    prompt = driver.tokens("progress report " * 20)
    answer = driver.ask(prompt, max_tokens=1, want_progress=True)
    totals = {total for total, _, _ in answer.progress}
    done = [processed for _, _, processed in answer.progress]
    assert totals == {len(prompt)}
    assert done == sorted(set(done))
    assert done[-1] == len(prompt)


def test_the_diary_names_who_is_at_risk(driver: Driver) -> None:
    driver.diary.phases.clear()
    answer = driver.ask("who", max_tokens=2)
    (id,) = [id for id, one in driver.answers.items() if one is answer]
    assert ("constrain", (id,)) in driver.diary.phases
    assert ("decode", (id,)) in driver.diary.phases
    assert ("sample", (id,)) in driver.diary.phases
    assert driver.diary.phases[-1] == ("idle", ())


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_resumed_request_goes_on_where_it_was(driver: Driver, temperature: float) -> None:
    sampling = Sampling(temperature=temperature, seed=5, repeat_penalty=1.1, ignore_eos=True)
    prompt = driver.tokens("tell me more")
    whole = driver.ask(prompt, max_tokens=24, sampling=sampling, cache_prompt=False).tokens
    for cut in (1, 10, 23):
        rest = driver.ask(prompt, produced=tuple(whole[:cut]), max_tokens=24, sampling=sampling, cache_prompt=False)
        assert rest.tokens == whole[cut:]
        assert rest.end == "limit"


def test_a_resumed_grammar_goes_on_where_it_was(driver: Driver) -> None:
    text = "abc 😀 def"
    whole = driver.ask("x", force=text).tokens
    for cut in range(1, len(whole)):
        rest = driver.ask("x", force=text, produced=tuple(whole[:cut]))
        pieces = [driver.vocab.piece(token) for token in (*whole[:cut], *rest.tokens)]
        assert b"".join(pieces).decode() == text


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["tiny_gemma3", "tiny_mamba"])
def test_other_kinds_of_memory_reuse_what_they_can(request: pytest.FixtureRequest, name: str, layout: str) -> None:
    driver = Driver(request.getfixturevalue(name), layout=layout)
    prompt = driver.tokens(SYSTEM)
    first = driver.ask(prompt, max_tokens=4, sampling=Sampling(temperature=0, ignore_eos=True))
    follow = (*prompt, *first.tokens, 40, 41, 42)
    assert driver.ask(follow, max_tokens=1).read == 4
    again = driver.ask(prompt, max_tokens=4, sampling=Sampling(temperature=0, ignore_eos=True))
    assert again.tokens == first.tokens
    answers = [driver.submit((*prompt, 50 + i), force=f"t{i}") for i in range(6)]
    driver.run()
    assert [driver.text(answer) for answer in answers] == [f"t{i}" for i in range(6)]
    assert driver.warnings == []
