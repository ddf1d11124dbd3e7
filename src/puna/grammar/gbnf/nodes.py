"""The parts of a GBNF grammar. Pure values, compared by identity: each one stands for a place in the grammar."""

from __future__ import annotations

from dataclasses import dataclass, field

from puna.grammar.charset import CharSet


class GrammarError(ValueError):
    """A grammar is wrong; says where and what, fit for whoever wrote it."""


@dataclass(eq=False, slots=True)
class Chars:
    """One character out of a set."""

    chars: CharSet


@dataclass(eq=False, slots=True)
class Token:
    """One token of the vocabulary, or any but that one."""

    id: int
    negated: bool = False


@dataclass(eq=False, slots=True)
class Ref:
    """Whatever the rule of that name matches."""

    name: str
    line: int = 0


@dataclass(eq=False, slots=True)
class Seq:
    """One after the other; nothing at all when empty."""

    items: list[Node] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Alt:
    """One of several."""

    options: list[Node]


@dataclass(eq=False, slots=True)
class Repeat:
    """The same several times."""

    item: Node
    low: int
    high: int | None
    """None for no bound."""
    line: int = 0


Node = Chars | Token | Ref | Seq | Alt | Repeat

Rules = dict[str, Node]
"""Rules by name; matching begins with the one called `root`."""


def children(node: Node) -> list[Node]:
    """The nodes directly below."""
    if isinstance(node, Seq):
        return node.items
    if isinstance(node, Alt):
        return node.options
    if isinstance(node, Repeat):
        return [node.item]
    return []


def sequence(items: list[Node]) -> Node:
    """The items in order, without a wrapper where there is only one."""
    return items[0] if len(items) == 1 else Seq(items)
