"""What a model with random weights says under a constraint belongs to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from puna.errors import InvalidRequest
from puna.grammar import prepare
from puna.grammar.gbnf.nodes import GrammarError
from puna.grammar.gbnf.parse import parse
from puna.grammar.gbnf.rules import check_rules
from puna.types import Constraint, Sampling
from tests.engine.driver import Answer, Driver
from tests.unit.grammar.reference import RandomGrammars, Reference
from tests.unit.grammar.schemas import SchemaMaker, is_valid

HOT = Sampling(temperature=1, top_k=0, top_p=1, min_p=0)
CLOSING = 6.0
"""Added to the logits of what ends strings, lists and objects: random answers would hardly ever end without."""


@pytest.fixture(scope="module")
def driver(tiny_llama: Path) -> Iterator[Driver]:
    yield Driver(tiny_llama, n_slots=8, cache_ram=0)


def ask_all(driver: Driver, constraints: list[Constraint]) -> list[Answer]:
    """One answer to each, all at once."""
    pieces = ((token, driver.vocab.piece(token)) for token in range(driver.vocab.n_tokens))
    bias = tuple((token, CLOSING) for token, piece in pieces if piece[:1] in (b'"', b"}", b"]"))
    answers = [
        driver.submit("x", constraint=one, sampling=msgspec.structs.replace(HOT, seed=seed, logit_bias=bias), max_tokens=120)
        for seed, one in enumerate(constraints)
    ]
    driver.run(limit=200_000)
    return answers


def schemas(n: int) -> Iterator[tuple[Any, Constraint]]:
    """The first `n` random schemas that can be enforced as a whole."""
    seed = 0
    while n:
        seed += 1
        schema = SchemaMaker(seed).schema()
        try:
            constraint = prepare(Constraint("json_schema", json.dumps(schema), strict=True))
        except InvalidRequest:
            continue
        n -= 1
        yield schema, constraint


def check_schemas(driver: Driver, n: int) -> None:
    asked = list(schemas(n))
    ended = 0
    for (schema, _), answer in zip(asked, ask_all(driver, [constraint for _, constraint in asked]), strict=True):
        assert answer.end in ("eos", "limit"), answer.error
        if answer.end == "eos":
            ended += 1
            text = driver.text(answer)
            assert is_valid(schema, json.loads(text)) is not False, (schema, text)
    assert ended > n // 2


def check_grammars(driver: Driver, n: int) -> None:
    made = RandomGrammars(1)
    grammars: list[str] = []
    while len(grammars) < n:
        grammar = made.grammar()
        try:
            check_rules(parse(grammar))
        except GrammarError:
            continue
        grammars.append(grammar)
    ended = 0
    for grammar, answer in zip(grammars, ask_all(driver, [Constraint("gbnf", one) for one in grammars]), strict=True):
        if answer.end == "eos":
            ended += 1
            assert Reference(parse(grammar)).accepts(driver.text(answer)), (grammar, driver.text(answer))
    assert ended > n // 2


def test_answers_are_valid_under_their_schemas(driver: Driver) -> None:
    check_schemas(driver, 60)


def test_answers_match_their_grammars(driver: Driver) -> None:
    check_grammars(driver, 30)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_very_many_answers(driver: Driver) -> None:
    check_schemas(driver, 500)
    check_grammars(driver, 500)
