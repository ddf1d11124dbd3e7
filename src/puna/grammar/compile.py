"""Constraints as clients send them made into the engine's form, with what is not enforced, or an error in words."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import msgspec

from puna.errors import InvalidRequest
from puna.grammar import engine_form
from puna.grammar.charset import escape
from puna.grammar.engine_form import FUEL, problem_of, shorten, string_problem
from puna.grammar.gbnf import GrammarError, TokenId, gbnf_to_lark
from puna.grammar.limits import check_text
from puna.grammar.regex import RegexError
from puna.grammar.schema import Effort, Loss, SchemaError, TooCostly, rewrite_schema
from puna.grammar.trigger import LazyTrigger
from puna.types import Constraint

PARAMS = {"gbnf": "grammar", "lark": "lark", "regex": "regex", "json_schema": "json_schema", "choice": "choice"}
"""The request field that each kind of constraint comes from, for error messages."""

MAX_SECONDS = 0.8
"""Processor time after which no further try is begun with a schema."""

MAX_COMPILE = 0.5
"""Processor time for compiling a schema: the engine will compile it again, while others wait for their next token."""

_FUEL = {Effort.ALL: FUEL // 2, Effort.MUCH: FUEL // 2, Effort.LITTLE: FUEL, Effort.LEAST: FUEL}

MOST_NAMED = 20
"""Most keywords that one error names."""


def prepare(
    constraint: Constraint, token_id: TokenId = lambda _text: None, preserved: Mapping[str, int] = MappingProxyType({})
) -> Constraint:
    """The constraint with `compiled` and `warnings`. Raises `InvalidRequest` for what cannot be enforced.

    `token_id` looks up the tokens that a GBNF grammar names by their texts. Of `preserved` tokens, by text, such a grammar
    means the tokens as well where it has their texts. Takes up to seconds, for hostile input.
    """
    if constraint.compiled:
        return constraint
    param = PARAMS[constraint.kind]
    check_text(constraint.source, param=param)
    check_triggers(constraint)
    if constraint.kind == "json_schema":
        compiled, losses = _schema(constraint.source, strict=constraint.strict)
        return msgspec.structs.replace(constraint, compiled=compiled, warnings=tuple(map(str, losses)))
    return msgspec.structs.replace(constraint, compiled=_grammar(constraint, token_id, preserved, param))


def check_triggers(constraint: Constraint) -> None:
    """Raise `InvalidRequest` for a trigger that cannot be searched for."""
    try:
        LazyTrigger(constraint.triggers)
    except RegexError as error:
        raise InvalidRequest(f"a trigger's pattern cannot be used: {error}", param="grammar_triggers") from error


def _grammar(constraint: Constraint, token_id: TokenId, preserved: Mapping[str, int], param: str) -> str:
    if constraint.kind == "regex":
        compiled = engine_form.of_regex(constraint.source)
    elif constraint.kind == "choice":
        compiled = engine_form.of_regex("|".join(map(escape, msgspec.json.decode(constraint.source, type=list[str]))))
    else:
        lark = constraint.source
        if constraint.kind == "gbnf" and not lark.lstrip().startswith("%llguidance"):
            try:
                lark = gbnf_to_lark(lark, token_id, preserved)
            except GrammarError as error:
                raise InvalidRequest(f"the grammar cannot be read: {error}", param=param) from error
        compiled = engine_form.of_lark(lark)
    problem = problem_of(compiled)
    if problem:
        raise InvalidRequest(f"the grammar cannot be used: {problem}", param=param)
    return compiled


@lru_cache(maxsize=256)
def _schema(source: str, *, strict: bool) -> tuple[str, tuple[Loss, ...]]:
    """A schema in the engine's form, with as much of it as the engine can take."""
    try:
        schema = msgspec.json.decode(source)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"the schema is not valid JSON: {error}", param="json_schema") from error
    deadline = time.thread_time() + MAX_SECONDS
    first = "it is too complex"
    for effort in (Effort.ALL,) if strict else sorted(Effort, reverse=True):
        try:
            compiled, losses = _rewritten(schema, effort, deadline)
            if strict:
                _refuse_losses(losses)
            begin = time.thread_time()
            problem = problem_of(compiled, FUEL if strict else _FUEL[effort])
            if not problem and time.thread_time() - begin > MAX_COMPILE:
                problem = "it takes too long to compile"
            if not problem:
                return compiled, losses
        except TooCostly as error:
            problem = str(error)
        first = problem if effort is Effort.ALL else first
        if time.thread_time() > deadline:
            break
    raise InvalidRequest(f"the schema cannot be used: {first}", param="json_schema")


def _refuse_losses(losses: tuple[Loss, ...]) -> None:
    if losses:
        named = shorten("; ".join(map(str, losses[:MOST_NAMED])), 4000)
        raise InvalidRequest(f"the schema is strict, but not all of it can be enforced: {named}", param="json_schema")


def _rewritten(schema: Any, effort: Effort, deadline: float) -> tuple[str, tuple[Loss, ...]]:
    try:
        rewritten, losses = rewrite_schema(schema, string_problem, effort=effort, deadline=deadline)
        return engine_form.of_schema(rewritten), tuple(losses)
    except TooCostly:
        raise
    except SchemaError as error:
        raise InvalidRequest(f"the schema cannot be used: {error}", param="json_schema") from error
    except RecursionError as error:
        raise InvalidRequest(
            "the schema cannot be used: its parts refer to each other too deeply", param="json_schema"
        ) from error
