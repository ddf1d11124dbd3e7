"""How long the texts are that grammars prescribe."""

from __future__ import annotations

import json
from typing import Literal

import pytest

from puna.errors import InvalidRequest
from puna.grammar import prepare
from puna.grammar.extent import MAX_EXTENT, lark_extent, regex_extent
from puna.types import Constraint


@pytest.mark.parametrize(
    ("source", "extent"),
    [
        ("", 0),
        ("abc", 3),
        ("a{5}", 5),
        ("ab{5}", 6),
        ("(ab){5}", 10),
        ("((a{3}){4}){5}b", 61),
        ("a{2,9}", 2),
        ("a{2,}", 2),
        ("a{0,9}", 1),
        ("a|bcd|ef", 3),
        ("(a|bcd){2}|x", 6),
        ("[a-z]{7}", 7),
        (r"[\]a]{7}", 7),
        ("[]{9}]{2}", 2),
        (r"\{3\}", 3),
        (r"\x{61}{7}", 7),
        (r"\p{L}{4}", 4),
        ("(?i)a", 1),
        ("(?:ab){3}", 6),
        ("(?P<n>ab){3}", 6),
        ("(?=ab)c", 3),
        ("^a+b*$", 2),
        ("((((", 0),
        ("a{" + "9" * 5000 + "}", 2 * MAX_EXTENT),
        ("a" + "{999}" * 5000, 2 * MAX_EXTENT),
        ("a{0007}", 7),
        ("))a", 1),
    ],
)
def test_expressions(source: str, extent: int) -> None:
    assert regex_extent(source) == extent


@pytest.mark.parametrize(
    ("source", "extent"),
    [
        ('start: "abc"', 3),
        ('start: x{3} y ~ 2 | z~1..5\nx: "ab"\ny: /c{4}/\nz: "d"', 14),
        ('start: ("a" | "bcd")+ ["ef"]', 5),
        ('start: x\nx[max_tokens=5]: y\ny.2: "abcd"', 4),
        ('start: "a" start | "b"', 1),
        ('start: "a{9}" // "commented out"\n# "and this"', 4),
        ('start: %regex {"pattern": "a{90}"}', 90 + 7),
        ("%llguidance {}\nstart: T0\nT0: /(?:(?:a){10,10}){10,10}/", 100),
    ],
)
def test_grammars(source: str, extent: int) -> None:
    assert lark_extent(source) == extent


DOUBLING = "\n".join(["root ::= r0", *(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(30)), 'r30 ::= "a"'])
Kind = Literal["gbnf", "regex", "lark", "json_schema"]
HUGE: list[tuple[Kind, str]] = [
    ("gbnf", 'root ::= ((("a"{100}){100}){100}){100}'),
    ("gbnf", 'root ::= [a-z] b{1000}\nb ::= c{1000}\nc ::= "a"{1000}'),
    ("gbnf", DOUBLING),
    ("regex", "((a{100}){100}){100}"),
    ("regex", "b|c((a{1000}){1000})+"),
    ("lark", 'start: T2\nT2: T1{1000}\nT1: T0{1000}\nT0: "a"{100}'),
    ("lark", 'start: %json {"type": "string", "pattern": "((a{1000}){1000}){1000}"}'),
    ("json_schema", json.dumps({"type": "string", "pattern": "^((a{100}){100}){100}$"})),
    (
        "json_schema",
        json.dumps({"properties": {"x": {"type": "array", "items": {"type": "string", "pattern": "^((a{1000}){1000}){1000}$"}}}}),
    ),
]


@pytest.mark.parametrize(("kind", "source"), HUGE)
def test_endless_texts_are_refused_at_once(kind: Kind, source: str) -> None:
    with pytest.raises(InvalidRequest):
        prepare(Constraint(kind, source, strict=True))


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("gbnf", "root ::= [a-z]{1,100000}"),
        ("gbnf", 'root ::= ("a" [0-9]{10} "\\n"){500}'),
        ("gbnf", 'root ::= "{1000}{1000}{1000}"'),
        ("regex", "[0-9a-f]{64}(-[0-9a-f]{64}){9}"),
        ("json_schema", json.dumps({"type": "string", "maxLength": 10**6})),
        ("json_schema", json.dumps({"type": "array", "items": {"type": "integer"}, "minItems": 5000, "maxItems": 5000})),
    ],
)
def test_long_ones_are_not(kind: Kind, source: str) -> None:
    assert prepare(Constraint(kind, source)).compiled
    assert MAX_EXTENT >= 64 * 1024
