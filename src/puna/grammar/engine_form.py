"""Calls of the constraint engine that need no vocabulary, and the limits under which it works."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from llguidance import LLMatcher, LLParserLimits

from puna.grammar.extent import MAX_EXTENT, is_too_long

FUEL = 300_000
"""Work for compiling a grammar: about a second."""

MAX_FUEL = 1_000_000
"""Work for a grammar whose parts are many but simple, of which as much takes a tenth of that time."""

LIMITS = LLParserLimits(
    initial_lexer_fuel=MAX_FUEL,
    step_lexer_fuel=200_000,
    step_max_items=100_000,
    max_lexer_states=20_000,
    precompute_large_lexemes=False,  # it takes longer to compile then, and fails for some grammars that work well without
    verbose_errors=False,
)
"""Of a grammar at work. Most steps take less than a millisecond, the worst some tens; its memory stays below 40 MB."""

_PATTERN_FUEL = 50_000

_JSON_OPTIONS: Any = {"whitespace_flexible": False}


def of_lark(text: str) -> str:
    """A Lark grammar in the engine's form."""
    return str(LLMatcher.grammar_from_lark(text))


def of_regex(text: str) -> str:
    """A regular expression for the whole output in the engine's form."""
    return str(LLMatcher.grammar_from_regex(text))


def of_schema(schema: dict[str, Any]) -> str:
    """A rewritten schema in the engine's form: compact JSON."""
    return str(LLMatcher.grammar_from_json_schema(json.dumps(schema), defaults=_JSON_OPTIONS))


def problem_of(grammar: str, fuel: int = FUEL) -> str:
    """What is wrong with a grammar in the engine's form; empty when it can be compiled with that much work."""
    if is_too_long(grammar):
        return f"it prescribes a text of more than {MAX_EXTENT} characters"
    limits = LLParserLimits(initial_lexer_fuel=fuel, precompute_large_lexemes=False, verbose_errors=False)
    message = LLMatcher.validate_grammar(grammar, limits=limits)
    if not message or message.startswith("WARNING"):
        return ""
    return shorten(message)


@lru_cache(maxsize=4096)
def string_problem(pattern: str, low: int | None = None, high: int | None = None) -> str:
    """What is wrong with a pattern for strings of `low` to `high` characters; empty when it can be enforced."""
    schema: dict[str, Any] = {"type": "string", "pattern": pattern}
    if low is not None:
        schema["minLength"] = low
    if high is not None:
        schema["maxLength"] = high
    problem = problem_of(of_schema(schema), _PATTERN_FUEL)
    if is_impossible(problem):
        return "no text fits it"
    return "it is no regular expression, or too complex" if problem else ""


def is_impossible(problem: str) -> bool:
    """Whether a problem is that no value is valid under a schema: only the engine's text tells."""
    return problem.startswith("Unsatisfiable schema")


@lru_cache(maxsize=1024)
def patterns_apart(patterns: tuple[str, ...]) -> bool:
    """Whether it is certain that no name of a property matches two of the patterns."""
    schema = {"type": "object", "patternProperties": dict.fromkeys(patterns, True)}
    return not problem_of(of_schema(schema), _PATTERN_FUEL)


def shorten(text: str, limit: int = 500) -> str:
    """The beginning of a message that may quote a whole grammar."""
    return text if len(text) <= limit else text[:limit] + " ..."
