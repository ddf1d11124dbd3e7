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
from puna.grammar.engine_form import FUEL, MAX_FUEL, is_impossible, patterns_apart, problem_of, shorten, string_problem
from puna.grammar.gbnf import GrammarError, TokenId, gbnf_to_lark
from puna.grammar.limits import check_regex, check_text
from puna.grammar.outline import compile_outline, shorten_triggers
from puna.grammar.regex import RegexError
from puna.grammar.schema import Checks, Effort, Impossible, Loss, SchemaError, TooCostly, rewrite_schema
from puna.grammar.trigger import LazyTrigger
from puna.types import Constraint

PARAMS = {
    "gbnf": "grammar",
    "lark": "lark",
    "regex": "regex",
    "json_schema": "json_schema",
    "choice": "choice",
    "outline": "tools",
}
"""The request field that each kind of constraint comes from, for error messages."""

MAX_TRYING = 0.5
"""Processor time after which only the least effort is tried with a schema."""

MAX_REWRITE = 0.4
"""Processor time for rewriting a schema once."""

MAX_COMPILE = 0.5
"""Processor time for compiling a schema: the engine will compile it again, while others wait for their next token."""

_CHECKS = Checks(string_problem, patterns_apart)

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
    if constraint.kind == "outline":
        return _outline(constraint, token_id, preserved)
    if constraint.kind == "json_schema":
        compiled, losses = _schema(constraint.source, strict=constraint.strict)
        return msgspec.structs.replace(constraint, compiled=compiled, warnings=tuple(map(str, losses)))
    return msgspec.structs.replace(constraint, compiled=_grammar(constraint, token_id, preserved, param))


def _outline(constraint: Constraint, token_id: TokenId, preserved: Mapping[str, int]) -> Constraint:
    compiled, warnings = compile_outline(constraint.source, preserved, lambda part: prepare(part, token_id, preserved))
    problem = _problem(compiled, FUEL)
    if problem and not is_impossible(problem):
        problem = _problem(compiled, MAX_FUEL)
    if problem:
        raise InvalidRequest(f"the tools cannot be used together: {problem}", param=PARAMS["outline"])
    triggers = shorten_triggers(constraint.triggers, preserved)
    return msgspec.structs.replace(constraint, compiled=compiled, warnings=warnings, triggers=triggers)


def check_triggers(constraint: Constraint) -> None:
    """Raise `InvalidRequest` for a trigger that cannot be searched for."""
    try:
        LazyTrigger(constraint.triggers)
    except RegexError as error:
        raise InvalidRequest(f"a trigger's pattern cannot be used: {error}", param="grammar_triggers") from error


def _grammar(constraint: Constraint, token_id: TokenId, preserved: Mapping[str, int], param: str) -> str:
    if constraint.kind == "regex":
        check_regex(constraint.source)
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
    problem = _problem(compiled, FUEL)
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
    begin = time.thread_time()
    first = "it is too complex"
    compiled = ""
    losses: tuple[Loss, ...] = ()
    for effort in sorted(Effort, reverse=True):
        if effort is not Effort.LEAST and time.thread_time() - begin > MAX_TRYING:
            continue
        before = compiled
        try:
            compiled, losses = _rewritten(schema, effort)
            if strict and effort is Effort.ALL:
                _refuse_losses(losses)
            problem = _problem(compiled, _FUEL[effort]) if compiled != before else first
            if not problem:
                return _accepted(compiled, losses, strict=strict)
        except TooCostly as error:
            problem = str(error)
        except Impossible as error:
            if strict or effort is not Effort.ALL:  # with less effort only branches of `oneOf` are allowed more
                raise InvalidRequest(f"the schema cannot be used: {error}", param="json_schema") from error
            problem = str(error)
        first = problem if effort is Effort.ALL else first
        if effort is Effort.MUCH and is_impossible(problem):
            break
    if compiled and not is_impossible(first) and time.thread_time() - begin < 2 * MAX_TRYING and not _problem(compiled, MAX_FUEL):
        return _accepted(compiled, losses, strict=strict)
    raise InvalidRequest(f"the schema cannot be used: {first}", param="json_schema")


def _problem(compiled: str, fuel: int) -> str:
    """What is wrong with a grammar in the engine's form, be it only that compiling it takes too long."""
    begin = time.thread_time()
    problem = problem_of(compiled, fuel)
    return problem or ("it takes too long to compile" if time.thread_time() - begin > MAX_COMPILE else "")


def _accepted(compiled: str, losses: tuple[Loss, ...], *, strict: bool) -> tuple[str, tuple[Loss, ...]]:
    if strict:
        _refuse_losses(losses)
    return compiled, losses


def _refuse_losses(losses: tuple[Loss, ...]) -> None:
    if losses:
        named = shorten("; ".join(map(str, losses[:MOST_NAMED])), 4000)
        raise InvalidRequest(f"the schema is strict, but not all of it can be enforced: {named}", param="json_schema")


def _rewritten(schema: Any, effort: Effort) -> tuple[str, tuple[Loss, ...]]:
    deadline = time.thread_time() + MAX_REWRITE
    try:
        rewritten, losses = rewrite_schema(schema, _CHECKS, effort=effort, deadline=deadline)
        return engine_form.of_schema(rewritten), tuple(losses)
    except (TooCostly, Impossible):
        raise
    except SchemaError as error:
        raise InvalidRequest(f"the schema cannot be used: {error}", param="json_schema") from error
    except RecursionError as error:
        raise InvalidRequest(
            "the schema cannot be used: its parts refer to each other too deeply", param="json_schema"
        ) from error
