"""GBNF, llama.cpp's grammar format, made into Lark, exactly: both allow the same texts."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from puna.grammar.gbnf.clashes import plan
from puna.grammar.gbnf.emit import emit
from puna.grammar.gbnf.nodes import GrammarError
from puna.grammar.gbnf.parse import TokenId, parse, token_names
from puna.grammar.gbnf.rules import check_rules, simplify

__all__ = ["GrammarError", "TokenId", "gbnf_to_lark", "token_names"]


def gbnf_to_lark(text: str, token_id: TokenId = lambda _text: None, preserved: Mapping[str, int] = MappingProxyType({})) -> str:
    """The grammar as Lark. Raises `GrammarError` that says what is wrong and in which line.

    `token_id` looks up token references by text, such as `<think>`. Where a text in quotes holds one of the `preserved`
    tokens, the token may stand in its place.
    """
    rules = parse(text, token_id, preserved)
    check_rules(rules)
    needed = simplify(rules)
    return emit(needed, plan(needed))
