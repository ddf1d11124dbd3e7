"""`generation_settings`: what an output has to belong to, under the names that requests use."""

from __future__ import annotations

from typing import Any

import pytest

from puna.api.fields import GenerationFields
from puna.api.settings import settings_object
from puna.types import Constraint, Generation, Trigger

NONE = {"grammar": "", "grammar_lazy": False, "grammar_triggers": [], "preserved_tokens": ()}


@pytest.mark.parametrize(
    "constraint, shown",
    [
        (None, {}),
        (Constraint("gbnf", 'root ::= "a"'), {"grammar": 'root ::= "a"'}),
        (Constraint("json_schema", '{"type":"string"}'), {"json_schema": {"type": "string"}}),
        (Constraint("regex", "a+"), {"regex": "a+"}),
        (Constraint("lark", "start: /a/"), {"lark": "start: /a/"}),
        (
            Constraint("gbnf", "g", triggers=(Trigger("token", "<t>", 5), Trigger("word", "w"), Trigger("pattern_full", "p"))),
            {
                "grammar": "g",
                "grammar_lazy": True,
                "grammar_triggers": [
                    {"type": 0, "value": "<t>", "token": 5},
                    {"type": 1, "value": "w"},
                    {"type": 3, "value": "p"},
                ],
            },
        ),
    ],
)
def test_constraints(constraint: Constraint | None, shown: dict[str, Any]) -> None:
    settings = settings_object(Generation(prompt=(1,), constraint=constraint), GenerationFields())
    names = {*NONE, "json_schema", "regex", "lark"}
    assert {name: settings[name] for name in names & settings.keys()} == {**NONE, **shown}


def test_preserved_tokens() -> None:
    assert settings_object(Generation(prompt=(1,), preserved_tokens=(7, 8)), GenerationFields())["preserved_tokens"] == (7, 8)
