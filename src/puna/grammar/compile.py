"""Into llguidance's own grammar form, and the check that it can be compiled."""

from __future__ import annotations

from functools import lru_cache

import llguidance
from llguidance.gbnf_to_lark import any_to_lark

from puna.errors import InvalidRequest
from puna.grammar.limits import check_text
from puna.types import Constraint

PARAMS = {"gbnf": "grammar", "lark": "lark", "regex": "regex", "json_schema": "json_schema"}
"""The request field that each kind of constraint comes from, for error messages."""


@lru_cache(maxsize=256)
def source_for_engine(constraint: Constraint) -> str:
    """The constraint as llguidance's grammar text. Raises `InvalidRequest` for text that is none of its kind."""
    param = PARAMS[constraint.kind]
    source = constraint.source
    check_text(source, param=param)
    try:
        if constraint.kind == "gbnf":
            return str(llguidance.LLMatcher.grammar_from_lark(any_to_lark(source)))
        if constraint.kind == "lark":
            return str(llguidance.LLMatcher.grammar_from_lark(source))
        if constraint.kind == "regex":
            return str(llguidance.LLMatcher.grammar_from_regex(source))
        return str(llguidance.LLMatcher.grammar_from_json_schema(source, defaults={"whitespace_flexible": False}))
    except Exception as error:  # the GBNF converter raises bare `Exception`s, and every one means a bad grammar
        raise InvalidRequest(f"the grammar cannot be read: {shorten(str(error))}", param=param) from error


@lru_cache(maxsize=256)
def check(constraint: Constraint) -> None:
    """Raise `InvalidRequest` unless the constraint can be compiled."""
    problem = llguidance.LLMatcher.validate_grammar(source_for_engine(constraint))
    if problem and not problem.startswith("WARNING"):
        raise InvalidRequest(f"the grammar cannot be used: {shorten(problem)}", param=PARAMS[constraint.kind])


def shorten(text: str, limit: int = 500) -> str:
    """The beginning of a message that may quote a whole grammar."""
    return text if len(text) <= limit else text[:limit] + " ..."
