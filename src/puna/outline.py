"""A language in outline: marks, free text between them, and constraints of its own in some places.

Whoever knows how a model writes says it with these, without knowing how grammars are enforced, or which of the marks are
control tokens of the vocabulary at hand. An `Outline`, as JSON text, is the source of a constraint of kind `outline`.
"""

from __future__ import annotations

import msgspec

from puna.types import Constraint


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Exactly this text. Control tokens stand in it for their own texts."""

    text: str


class Pattern(msgspec.Struct, frozen=True, tag="pattern"):
    """Text that matches a regular expression as a whole. It takes as much as it can, whatever follows."""

    regex: str


class Branch(msgspec.Struct, frozen=True):
    """A mark that ends free text, and what comes after it."""

    mark: str
    then: Node


class Free(msgspec.Struct, frozen=True, tag="free"):
    """Any text up to the first of some marks, the mark, and what comes after it."""

    branches: tuple[Branch, ...] = ()
    ends: bool = False
    """Whether the text may end without any mark; then nothing may follow this node that is not empty."""
    without: tuple[str, ...] = ()
    """Further texts that do not occur."""
    not_first: str = ""
    """A text that it does not begin with, if it is to end without a mark."""
    lost: str = ""
    """What is not enforced of the text, in words."""
    low: int = 0
    """Least characters of the text."""
    high: int | None = None
    """Most characters of the text."""


class Seq(msgspec.Struct, frozen=True, tag="seq"):
    """One after the other."""

    items: tuple[Node, ...]


class Alt(msgspec.Struct, frozen=True, tag="alt"):
    """One of them; at least one is there."""

    options: tuple[Node, ...]


class Repeat(msgspec.Struct, frozen=True, tag="repeat"):
    """The same at least `low` times, and at most `high` times unless that is None."""

    item: Node
    low: int = 0
    high: int | None = None


class Part(msgspec.Struct, frozen=True, tag="part"):
    """A constraint of its own."""

    constraint: Constraint
    label: str = ""
    """What it is, for messages about it."""
    param: str | None = None
    """The request field that it comes from."""
    spaced: bool = False
    """Whether JSON may have a blank after each comma and colon, as many models were trained to write it."""


Node = Text | Pattern | Free | Seq | Alt | Repeat | Part


class Outline(msgspec.Struct, frozen=True):
    """A language as a tree."""

    root: Node


EMPTY = Seq(())


def as_constraint(outline: Outline) -> Constraint:
    """The constraint that holds output to the outline."""
    return Constraint("outline", msgspec.json.encode(outline).decode())


def seq(*items: Node | str) -> Node:
    """A sequence; texts stand for themselves, empty ones for nothing."""
    nodes: list[Node] = []
    for item in items:
        if isinstance(item, str):
            item = Text(item)
        for node in item.items if isinstance(item, Seq) else (item,):
            if isinstance(node, Text) and nodes and isinstance(nodes[-1], Text):
                nodes[-1] = Text(nodes[-1].text + node.text)
            elif not isinstance(node, Text) or node.text:
                nodes.append(node)
    return nodes[0] if len(nodes) == 1 else Seq(tuple(nodes))


def alt(options: list[Node]) -> Node:
    """One of the options."""
    return options[0] if len(options) == 1 else Alt(tuple(options))
