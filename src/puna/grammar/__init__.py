"""Grammars as clients send them: limits, checks, and the form the constraint engine takes.

The server prepares a grammar here before it accepts the request; the worker compiles what comes of it for its vocabulary.
"""

from puna.grammar.compile import prepare
from puna.grammar.engine_form import LIMITS
from puna.grammar.regex import RegexError
from puna.grammar.threads import deep_pool
from puna.grammar.trigger import LazyTrigger

__all__ = ["LIMITS", "LazyTrigger", "RegexError", "deep_pool", "prepare"]
