"""Constraints at work in the engine: lazy ones, resumed ones, slow ones, and many."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from puna.engine import constraint as module
from puna.engine.constraint import ConstraintFactory, LazyMatcher
from puna.errors import InvalidRequest
from puna.outline import Outline, as_constraint, seq
from puna.types import Constraint, Sampling, Trigger
from tests.engine.driver import Driver

CALL = 'root ::= "<call>" "{" [a-z]+ "}"'
SCHEMA = {
    "properties": {"name": {"enum": ["the first", "the second"]}, "n": {"type": "integer", "minimum": 0, "maximum": 99}},
    "required": ["name", "n"],
    "additionalProperties": False,
}
FREE = Sampling(temperature=0, ignore_eos=True)


@pytest.fixture(scope="module")
def driver(tiny_llama: Path) -> Iterator[Driver]:
    yield Driver(tiny_llama)


@pytest.fixture(scope="module")
def factory(driver: Driver) -> ConstraintFactory:
    return ConstraintFactory(driver.vocab)


def lazy(factory: ConstraintFactory, grammar: str, *triggers: Trigger) -> LazyMatcher:
    matcher = factory.make(Constraint("gbnf", grammar, triggers=triggers))
    assert isinstance(matcher, LazyMatcher)
    return matcher


def spelled(driver: Driver, text: str) -> tuple[int, ...]:
    """The text in tokens, without what the vocabulary puts before a text."""
    end = driver.vocab.tokenize("\n", add_special=False, parse_special=False)
    return tuple(driver.vocab.tokenize("\n" + text, add_special=False, parse_special=False)[len(end) :])


def splits(driver: Driver, text: str) -> Iterator[tuple[int, ...]]:
    """The tokens of a text that is cut in two places before it is tokenised."""
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1):
            parts = (text[:first], text[first:second], text[second:])
            tokens = tuple(token for part in parts if part for token in spelled(driver, part))
            if b"".join(driver.vocab.piece(token) for token in tokens) == text.encode():
                yield tokens


@pytest.mark.parametrize(
    "trigger",
    [Trigger("word", "<call>"), Trigger("pattern", r"(<call>)\{?"), Trigger("pattern_full", r"[\s\S]*?(<call>)[\s\S]*")],
    ids=["word", "pattern", "whole"],
)
def test_a_lazy_grammar_sees_the_text_from_its_trigger_on(driver: Driver, factory: ConstraintFactory, trigger: Trigger) -> None:
    text = "I think <call>{the}"
    seen = 0
    for tokens in splits(driver, text):
        matcher = lazy(factory, CALL, trigger)
        for token in tokens:
            assert not matcher.done
            if matcher.active:
                assert matcher.allowed()[token]
            matcher.accept(token)
        assert matcher.active and matcher.done, tokens
        seen += 1
    assert seen > 50


def test_a_token_may_hold_the_end_of_free_text_and_the_beginning_of_the_grammar(
    driver: Driver, factory: ConstraintFactory
) -> None:
    (token,) = (token for token in range(driver.vocab.n_tokens) if driver.vocab.piece(token) == b" hello")
    matcher = lazy(factory, 'root ::= "lo" [0-9]+ "."', Trigger("word", "lo"))
    matcher.accept(token)
    assert matcher.active
    for char in "42.":
        (digit,) = spelled(driver, char)
        assert matcher.allowed()[digit]
        matcher.accept(digit)
    assert matcher.done


def test_a_token_that_triggers_is_part_of_the_grammar(driver: Driver, factory: ConstraintFactory) -> None:
    (control,) = driver.vocab.tokenize("<|im_start|>", add_special=False, parse_special=True)
    trigger = Trigger("token", "<|im_start|>", control)
    as_token = lazy(factory, f'root ::= <[{control}]> "x"', trigger)
    as_text = lazy(factory, 'root ::= "<|im_start|>" "x"', trigger)
    for matcher in (as_token, as_text):
        matcher.accept(control)
        (x,) = spelled(driver, "x")
        assert matcher.forced() == [x] or matcher.allowed()[x]
        matcher.accept(x)
        assert matcher.done


def test_a_grammar_that_does_not_begin_with_its_trigger_fails_in_words(driver: Driver, factory: ConstraintFactory) -> None:
    matcher = lazy(factory, 'root ::= "other"', Trigger("word", "the"))
    with pytest.raises(InvalidRequest, match="does not begin with its trigger"):
        for token in spelled(driver, "the"):
            matcher.accept(token)


def test_a_trigger_may_hold_control_tokens(driver: Driver, factory: ConstraintFactory) -> None:
    (control,) = driver.vocab.tokenize("<|im_start|>", add_special=False, parse_special=True)
    tokens = [*spelled(driver, "I <"), control, *spelled(driver, "call>")]
    matcher = lazy(factory, f'root ::= "<" <[{control}]> "call>" "x"', Trigger("word", "<<|im_start|>call>"))
    for token in tokens:
        matcher.accept(token)
    assert matcher.active and not matcher.done
    matcher.accept(spelled(driver, "x")[0])
    assert matcher.done


def test_an_outline_that_its_trigger_does_not_fit_leaves_the_answer_free(driver: Driver, factory: ConstraintFactory) -> None:
    (token,) = (token for token in range(driver.vocab.n_tokens) if driver.vocab.piece(token) == b" hello")
    constraint = msgspec.structs.replace(as_constraint(Outline(seq("help"))), triggers=(Trigger("word", "he"),))
    matcher = factory.make(constraint)
    for following in (token, *spelled(driver, "hel")):
        matcher.accept(following)
        assert not matcher.active and not matcher.done and not matcher.forced()


def test_lazy_answers_are_free_up_to_their_trigger(driver: Driver) -> None:
    free = driver.ask("once", max_tokens=30, sampling=FREE, cache_prompt=False)
    trigger = free.tokens[7]
    assert trigger not in free.tokens[:7]
    constraint = Constraint("gbnf", f'root ::= <[{trigger}]> "and so on"', triggers=(Trigger("token", "", trigger),))
    answer = driver.ask("once", max_tokens=60, sampling=FREE, constraint=constraint, cache_prompt=False)
    assert answer.tokens[:8] == free.tokens[:8]
    assert driver.text(answer).endswith("and so on") and answer.end == "eos"
    for cut in (3, 8, 10):
        done = tuple(answer.tokens[:cut])
        rest = driver.ask("once", max_tokens=60, sampling=FREE, constraint=constraint, cache_prompt=False, produced=done)
        assert done + tuple(rest.tokens) == tuple(answer.tokens)


def test_a_lazy_answer_without_its_trigger_is_free_to_its_end(driver: Driver) -> None:
    constraint = Constraint("gbnf", 'root ::= "x"', triggers=(Trigger("word", "never said at all"),))
    answer = driver.ask("once", max_tokens=20, sampling=FREE, constraint=constraint, cache_prompt=False)
    assert answer.tokens == driver.ask("once", max_tokens=20, sampling=FREE, cache_prompt=False).tokens


@pytest.mark.parametrize("n_probs", [0, 3])
@pytest.mark.parametrize("deterministic", [False, True])
def test_a_resumed_answer_keeps_to_its_schema(driver: Driver, n_probs: int, deterministic: bool) -> None:
    schema = Constraint("json_schema", json.dumps(SCHEMA))
    hot = Sampling(temperature=2, top_k=0, top_p=1, min_p=0, seed=3, n_probs=n_probs)
    more = {"constraint": schema, "sampling": hot, "cache_prompt": False, "deterministic": deterministic, "max_tokens": 80}
    whole = driver.ask("x", **more)
    assert whole.end == "eos"
    for cut in whole.steps[:-1]:
        rest = driver.ask("x", produced=tuple(whole.tokens[:cut]), **more)
        assert rest.tokens == whole.tokens[cut:]


def test_a_grammar_is_compiled_once(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    factory = ConstraintFactory(driver.vocab)
    read = []
    plain = ConstraintFactory._read

    def counted(self: ConstraintFactory, constraint: Constraint) -> object:
        read.append(constraint)
        return plain(self, constraint)

    monkeypatch.setattr(ConstraintFactory, "_read", counted)
    one = Constraint("regex", "[ab]{3}")
    for _ in range(3):
        matcher = factory.make(one)
        assert factory.knows(one)
        for token in spelled(driver, "aba"):
            matcher.accept(token)
        assert matcher.done
    assert read == [one]
    monkeypatch.setattr(module, "CACHED", 2)
    for number in range(4):
        factory.make(Constraint("regex", f"x{number}"))
    assert not factory.knows(one)


def test_others_go_on_while_a_grammar_is_compiled(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()
    plain = ConstraintFactory._read

    def slow(self: ConstraintFactory, constraint: Constraint) -> object:
        gate.wait(20)
        return plain(self, constraint)

    monkeypatch.setattr(ConstraintFactory, "_read", slow)
    waiting = driver.submit("x", constraint=Constraint("regex", "waited for"))
    given_up = driver.submit("x", constraint=Constraint("regex", "given up"))
    free = driver.ask_beside("y", max_tokens=15, sampling=FREE)
    assert len(free.tokens) == 15 and waiting.tokens == [] and not driver.engine.idle
    driver.abort(given_up)
    gate.set()
    driver.run()
    assert driver.text(waiting) == "waited for"
    assert given_up.tokens == []


def test_a_grammar_that_takes_too_long_ends_its_own_answer(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLOWEST", -1.0)
    slow = driver.ask("x", force="abc")
    assert (slow.end, slow.tokens) == ("error", []) and "too much time" in slow.error
    monkeypatch.undo()
    assert driver.text(driver.ask("x", force="abc")) == "abc"


def test_ambiguous_grammars_are_given_up_in_time(driver: Driver) -> None:
    grammar = Constraint("lark", 'start: e\ne: e e | "a" | "b" | e "c" e\n')
    answer = driver.ask("x", constraint=grammar, max_tokens=120, sampling=Sampling(temperature=1, seed=1, ignore_eos=True))
    assert answer.end in ("error", "limit")
    assert driver.text(driver.ask("x", force="fine")) == "fine"


def test_a_step_without_end_ends_the_process_and_others_leave_no_clock_running(
    factory: ConstraintFactory, driver: Driver
) -> None:
    before = signal.getsignal(signal.SIGALRM)

    class Slow:
        """Notes how long it may take."""

        limit = 0.0

        def consume_token(self, _token: int) -> None:
            self.limit = signal.getitimer(signal.ITIMER_REAL)[0]

        def is_error(self) -> bool:
            return False

    slow: Any = Slow()
    matcher = module.Matcher(slow, driver.vocab)
    matcher.accept(5)
    assert 0 < slow.limit <= module.HOPELESS
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) == before


@pytest.mark.parametrize("text", ["\u2581", "a \u2581\u2581b", "<\u2581>\u6f22"])
def test_texts_with_the_sign_that_vocabularies_have_for_a_blank(driver: Driver, text: str) -> None:
    source = msgspec.json.encode({"enum": [text, text + "!"]}).decode()
    answer = driver.ask("hello", constraint=Constraint("json_schema", source))
    assert answer.end == "eos" and json.loads(driver.text(answer)) in (text, text + "!")
