"""LoRA adapters and control vectors on tiny models: who says what, what is shared, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from puna.config import ScaledFile
from puna.types import Sampling
from tests import tiny
from tests.engine.driver import Driver

VOCAB = tiny.spm_vocab()
WORDS = tuple((VOCAB.id(a), VOCAB.id(b)) for a, b in (("A", "a"), ("B", "b"), ("C", "c")))
"""What each adapter says."""

INVOKE = tuple(VOCAB.id(letter) for letter in "!#!")
FREE = Sampling(temperature=0, ignore_eos=True)
SCORED = Sampling(temperature=0, ignore_eos=True, n_probs=5)
A, B, C = ((0, 1.0),), ((1, 1.0),), ((2, 1.0),)
"""The third adapter is an activated one."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[ScaledFile, ...]:
    folder = tmp_path_factory.mktemp("lora")
    invocations = ((), (), INVOKE)
    return tuple(
        ScaledFile(
            str(tiny.write_lora(folder / f"{n}.gguf", seed=n, says=says, n_vocab=len(VOCAB), invocation=invoke, rank=2 + n))
        )
        for n, (says, invoke) in enumerate(zip(WORDS, invocations, strict=True))
    )


@pytest.fixture(scope="module", params=[("split", "off"), ("unified", "off"), ("unified", "on")])
def driver(request: pytest.FixtureRequest, tiny_llama: Path, files: tuple[ScaledFile, ...]) -> Iterator[Driver]:
    layout, attention = request.param
    made = Driver(tiny_llama, layout=layout, flash_attention=attention, lora=files, slots_wait_share=8)
    yield made
    assert made.warnings == []


def fresh(driver: Driver, text: str) -> tuple[int, ...]:
    """A prompt that begins like no other test's."""
    return (VOCAB.id("<0x%02X>" % (sum(text.encode()) % 256)), *driver.tokens(text)[1:])


def test_each_adapter_has_its_say(driver: Driver) -> None:
    answers = [driver.submit("say it", lora=lora, max_tokens=12, sampling=FREE) for lora in (A, B, ((0, -1.0),), ((1, 2.0),))]
    driver.run()
    for answer, words in zip(answers, (WORDS[0], WORDS[1], WORDS[0], WORDS[1]), strict=True):
        assert set(answer.tokens) <= set(words), driver.text(answer)
    plain = driver.ask("say it", max_tokens=12, sampling=FREE)
    assert not set(plain.tokens) & {token for words in WORDS for token in words}


def test_the_same_prompt_under_another_set_is_read_again(driver: Driver) -> None:
    prompt = fresh(driver, "what is cached under one set of adapters stays there")
    sets = (A, B, ((0, 0.5),), ((0, 1.0), (1, 1.0)), ())
    for lora in sets:
        assert driver.ask(prompt, lora=lora, max_tokens=2, sampling=FREE).cached == 0
    for lora in sets:
        assert driver.ask(prompt, lora=lora, max_tokens=2, sampling=FREE).cached == len(prompt) - 1


def test_running_prompts_are_shared_within_a_set_only(driver: Driver) -> None:
    prompt = fresh(driver, "they all come at once and share what they may share")
    answers = [driver.submit(prompt, lora=lora, max_tokens=3, sampling=FREE) for lora in (A, B, A, B)]
    driver.run()
    assert [answer.cached for answer in answers] == [0, 0, len(prompt) - 1, len(prompt) - 1]
    assert answers[0].tokens == answers[2].tokens
    assert answers[1].tokens == answers[3].tokens


def test_a_mixed_load_gives_what_each_set_gives_alone(tiny_llama: Path, files: tuple[ScaledFile, ...]) -> None:
    """To the last bit, where shapes are equal: two sequences a set in neighbouring seats, until the first set leaves them."""

    def run(sets: list[tuple[tuple[int, float], ...]]) -> list[list[object]]:
        driver = Driver(tiny_llama, lora=files, flash_attention="off")
        given = [
            driver.submit(f"{text} in a mixed load", lora=lora, max_tokens=10, sampling=SCORED, cache_prompt=False)
            for lora in sets
            for text in ("first", "second")
        ]
        driver.run()
        return [[answer.tokens[:9], answer.probs[:9]] for answer in given]

    alone = [*run([A]), *run([B])]
    assert run([A, B]) == alone
    assert run([B, A]) == alone[2:] + alone[:2]
    assert alone[0] != alone[2]


def test_sets_that_arrive_in_turn_sit_side_by_side(tiny_llama: Path, files: tuple[ScaledFile, ...]) -> None:
    """And say what they say alone."""
    driver = Driver(tiny_llama, layout="split", flash_attention="off", lora=files)
    prompts = [fresh(driver, f"prompt {number} " * (number + 2)) for number in range(4)]
    asked = [(prompt, lora) for prompt, lora in zip(prompts, (A, B, A, B), strict=True)]
    answers = [driver.submit(prompt, lora=lora, max_tokens=30, sampling=FREE) for prompt, lora in asked]
    driver.run(until=lambda: all(len(answer.tokens) > 5 for answer in answers))
    seated = sorted(driver.engine._scheduler.running, key=lambda one: one.seat)
    assert [one.generation.lora for one in seated] == [A, A, B, B]
    driver.run()
    for (prompt, lora), answer in zip(asked, answers, strict=True):
        assert driver.ask(prompt, lora=lora, max_tokens=30, sampling=FREE, cache_prompt=False).tokens == answer.tokens
    assert driver.warnings == []


def test_deterministic_requests_are_the_same_whatever_else_applies(tiny_llama: Path, files: tuple[ScaledFile, ...]) -> None:
    driver = Driver(tiny_llama, lora=files, flash_attention="off")
    prompt = "the same, whatever else"

    def ask() -> list[object]:
        answer = driver.ask_beside(prompt, lora=A, max_tokens=6, sampling=SCORED, deterministic=True)
        return [answer.tokens, answer.probs]

    alone = ask()
    others = [driver.submit(f"beside {n}", lora=lora, max_tokens=40, sampling=FREE) for n, lora in enumerate((B, ()))]
    driver.step()
    assert ask() == alone
    driver.run()
    assert set(others[0].tokens) <= set(WORDS[1])


def test_many_requests_of_all_sets_never_mix(driver: Driver) -> None:
    sets = [((n % 3, 1.0),) if n % 4 else () for n in range(30)]
    invoked = "".join(VOCAB.tokens[token] for token in INVOKE)
    answers = [
        driver.submit(f"{n % 5} of many {invoked} in turn", lora=lora, max_tokens=3 + n % 7, sampling=FREE)
        for n, lora in enumerate(sets)
    ]
    driver.run()
    for answer, lora in zip(answers, sets, strict=True):
        own = set(WORDS[lora[0][0]]) if lora else set()
        others = {token for words in WORDS for token in words} - own
        assert not set(answer.tokens) & others
        assert not own or set(answer.tokens) <= own


def test_a_resumed_request_goes_on_with_its_set(driver: Driver) -> None:
    whole = driver.ask("to be resumed", lora=A, max_tokens=8, sampling=FREE, cache_prompt=False)
    rest = driver.ask("to be resumed", lora=A, max_tokens=8, sampling=FREE, cache_prompt=False, produced=tuple(whole.tokens[:3]))
    assert len(rest.tokens) == 5
    assert set(rest.tokens) <= set(WORDS[0])


# activated adapters


def invoked(driver: Driver, text: str) -> tuple[tuple[int, ...], int]:
    """A prompt with the invocation after `text`, and where it is."""
    start = fresh(driver, text)
    return (*start, *INVOKE, *driver.tokens("go")[1:]), len(start)


def test_an_activated_adapter_sleeps_until_it_is_invoked(driver: Driver) -> None:
    plain = driver.ask("nobody calls", max_tokens=6, sampling=SCORED, cache_prompt=False)
    asleep = driver.ask("nobody calls", lora=C, max_tokens=6, sampling=SCORED, cache_prompt=False)
    assert asleep.probs == plain.probs
    prompt, _ = invoked(driver, "somebody calls")
    assert set(driver.ask(prompt, lora=C, max_tokens=6, sampling=FREE).tokens) <= set(WORDS[2])


def test_what_comes_before_an_invocation_is_shared_with_the_plain_model(driver: Driver) -> None:
    prompt, start = invoked(driver, "a conversation that was read without the adapter")
    driver.ask(prompt[:start], max_tokens=1, sampling=FREE)
    assert driver.ask(prompt, lora=C, max_tokens=3, sampling=FREE).cached == start
    assert driver.ask(prompt, lora=C, max_tokens=3, sampling=FREE).cached == len(prompt) - 1
    assert driver.ask(prompt, lora=((2, 0.5),), max_tokens=3, sampling=FREE).cached == start
    assert driver.ask(prompt, max_tokens=3, sampling=FREE).cached == start


def test_what_comes_before_an_invocation_is_left_for_the_plain_model(driver: Driver) -> None:
    prompt, start = invoked(driver, "a conversation that was read with the adapter first")
    first = driver.ask(prompt, lora=C, max_tokens=3, sampling=FREE)
    assert first.cached == 0
    assert driver.ask(prompt, max_tokens=3, sampling=FREE).cached == start
    assert driver.ask(prompt, lora=C, max_tokens=3, sampling=FREE).tokens == first.tokens


def test_sharing_with_a_running_request_ends_where_the_invocation_begins(driver: Driver) -> None:
    prompt, start = invoked(driver, "both of them begin in the same way and go on differently")
    with_it = driver.submit(prompt, lora=C, max_tokens=5, sampling=FREE)
    without = driver.submit(prompt, max_tokens=5, sampling=FREE)
    driver.run()
    assert (with_it.cached, without.cached) == (0, start)
    assert set(with_it.tokens) <= set(WORDS[2])
    assert not set(without.tokens) & set(WORDS[2])


def test_the_adapter_acts_exactly_from_the_invocation_on(driver: Driver) -> None:
    """Scored prompts: what is predicted before the invocation is as without it, what follows its first token is not."""
    prompt, start = invoked(driver, "scored")
    wish = {"max_tokens": 0, "sampling": SCORED, "prompt_probs": True, "cache_prompt": False}
    plain, active = (driver.ask(prompt, lora=lora, **wish).prompt_probs for lora in ((), C))
    own = [prob.top[0][0] in WORDS[2] for prob in active]
    assert own == [False] * start + [True] * (len(prompt) - 1 - start)
    assert [prob.top[0][0] for prob in active[:start]] == [prob.top[0][0] for prob in plain[:start]]


# numbers beyond all bounds


@pytest.mark.parametrize("scale", [1e12, 3e38, -3e38])
def test_a_scale_that_breaks_the_numbers_ends_its_own_request_only(driver: Driver, scale: float) -> None:
    beside = [driver.submit(f"beside {scale} {n}", lora=lora, max_tokens=30, sampling=FREE) for n, lora in enumerate((A, ()))]
    driver.run(until=lambda: all(answer.tokens for answer in beside))
    broken = driver.ask_beside("this cannot be", lora=((0, scale),), max_tokens=5, sampling=SCORED)
    driver.run()
    assert broken.end == "error"
    assert "smaller scales" in broken.error
    assert [len(answer.tokens) for answer in beside] == [30, 30]
    assert set(beside[0].tokens) <= set(WORDS[0])
    for n in range(4):  # every seat
        after = driver.submit(f"afterwards {n} {scale}", max_tokens=3, sampling=SCORED)
    driver.run()
    assert all(prob.logprob > -1e30 for prob in after.probs)


def test_memory_that_cannot_be_cut_is_shared_where_the_invocation_begins(tiny_gemma3: Path, tmp_path: Path) -> None:
    path = tiny.write_lora(tmp_path / "window.gguf", arch="gemma3", invocation=INVOKE)
    driver = Driver(tiny_gemma3, lora=(ScaledFile(str(path)),))
    prompt = (*(VOCAB.id(letter) for letter in "read it once for both of them".replace(" ", "_")), *INVOKE, VOCAB.id("x"))
    start = len(prompt) - len(INVOKE) - 1
    own = ((0, 1.0),)
    active = driver.ask(prompt, lora=own, max_tokens=3, sampling=SCORED)
    assert active.cached == 0
    plain = driver.ask(prompt, max_tokens=3, sampling=SCORED)
    assert plain.cached == start
    assert plain.probs != active.probs
    assert driver.ask((*prompt, *active.tokens, VOCAB.id("y")), lora=own, max_tokens=1).cached >= len(prompt)
    assert driver.warnings == []
