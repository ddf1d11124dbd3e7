"""Hostile and broken grammars are refused in words, quickly."""

from __future__ import annotations

import time

import pytest

from puna.errors import InvalidRequest
from puna.grammar import prepare
from puna.grammar.limits import MAX_BYTES, deepest_nesting
from puna.types import Constraint

CHAIN = "\n".join(f"r{i} ::= r{i + 1}" for i in range(5000)) + '\nr5000 ::= "x"\nroot ::= r0'

BAD = {
    "no root": ("gbnf", "answer ::= 'yes'"),
    "undefined rule": ("gbnf", "root ::= nothing"),
    "empty": ("gbnf", ""),
    "cut off": ("gbnf", "root ::= [a-z"),
    "nested": ("gbnf", "root ::= " + "(" * 60_000 + '"a"' + ")" * 60_000),
    "many rules": ("gbnf", CHAIN),
    "large": ("gbnf", 'root ::= "' + "a" * (2 * MAX_BYTES) + '"'),
    "NUL": ("gbnf", 'root ::= "a\0b"'),
    "repetition of a repetition": ("gbnf", 'root ::= ("a"*)*'),
    "look-ahead": ("regex", "(?=a)b"),
    "not JSON": ("json_schema", "{bad"),
    "impossible": ("json_schema", '{"not":{}}'),
    "endless": ("json_schema", '{"type":"object","properties":{"next":{"$ref":"#"}},"required":["next"]}'),
    "deep schema": ("json_schema", '{"items":' * 2000 + "{}" + "}" * 2000),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_grammars_are_refused(name: str) -> None:
    kind, source = BAD[name]
    begin = time.monotonic()
    with pytest.raises(InvalidRequest) as caught:
        prepare(Constraint(kind, source))  # type: ignore[arg-type]  # a literal, from a table
    assert time.monotonic() - begin < 2
    assert caught.value.param
    assert len(caught.value.message) < 1000


@pytest.mark.parametrize(
    "constraint",
    [
        Constraint("gbnf", 'root ::= "abc\U0001f600def"'),
        Constraint("gbnf", 'root ::= ("a" | "b")+ [0-9]{2,3}'),
        Constraint("regex", r"\d{4}-\d{2}"),
        Constraint("json_schema", '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}'),
        Constraint("lark", 'start: "a" "b"'),
    ],
)
def test_good_grammars_pass(constraint: Constraint) -> None:
    assert prepare(constraint).compiled


def test_brackets_in_quotes_do_not_nest() -> None:
    assert deepest_nesting('root ::= "((((" | ("a" ("b"))') == 2
    assert deepest_nesting(r'root ::= "\"((" (a)') == 1
