"""What counts as an object of the measured schema."""

from __future__ import annotations

import json

import jsonschema
import pytest

from puna.bench.schema import SCHEMA, is_valid

GOOD = {"code": "ABC-1234", "count": 7, "colours": ["red", "red"], "maker": {"country": "Peru", "certified": True}}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"code": "abc-1234"},
        {"count": -1},
        {"count": 1001},
        {"count": 1.5},
        {"count": True},
        {"colours": []},
        {"colours": ["red"] * 4},
        {"colours": ["pink"]},
        {"colours": "red"},
        {"maker": {"country": "x" * 21, "certified": True}},
        {"maker": {"country": "x"}},
        {"maker": {"country": "x", "certified": 1}},
        {"maker": {"country": "x", "certified": True, "more": 1}},
        {"more": 1},
    ],
)
def test_the_check_agrees_with_a_validator(change: dict[str, object]) -> None:
    value = {**GOOD, **change}
    assert is_valid(json.dumps(value)) == jsonschema.Draft202012Validator(SCHEMA).is_valid(value)
    assert is_valid(json.dumps(value)) == (not change)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", "```json\n{}\n```"])
def test_anything_else_does_not_count(text: str) -> None:
    assert not is_valid(text)
