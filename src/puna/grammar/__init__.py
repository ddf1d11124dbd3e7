"""Grammars as clients send them: limits, checks, and the form the constraint engine takes.

The server checks a grammar here before it accepts the request; the worker compiles the same text for its vocabulary.
"""

from puna.grammar.compile import check, source_for_engine

__all__ = ["check", "source_for_engine"]
