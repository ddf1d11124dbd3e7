"""Whatever the engine lets through is valid under the schema it was made from, unless there was a warning."""

from __future__ import annotations

import json
import random

import pytest

from puna.errors import InvalidRequest
from puna.grammar import prepare
from puna.types import Constraint
from tests.unit.grammar.schemas import SchemaMaker, is_valid, random_value


def judge(seeds: range, *, values: int) -> int:
    """How many texts were found valid; fails for the first one that is not."""
    found = 0
    for seed in seeds:
        schema = SchemaMaker(seed).schema()
        try:
            constraint = prepare(Constraint("json_schema", json.dumps(schema)))
        except InvalidRequest as error:
            assert len(error.message) < 1000
            continue
        if constraint.warnings:
            continue
        choose = random.Random(seed)
        for _ in range(values):
            text = random_value(constraint.compiled, choose)
            if text is not None:
                assert is_valid(schema, json.loads(text)) is not False, (seed, schema, text)
                found += 1
    return found


def test_texts_are_valid() -> None:
    assert judge(range(250), values=3) > 200


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_very_many_texts_are_valid() -> None:
    assert judge(range(1000, 2000), values=4) > 1000
