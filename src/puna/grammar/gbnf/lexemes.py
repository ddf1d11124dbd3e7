"""Which parts of a grammar become lexemes: as large as possible, so that masks are quick to compute, yet only where taking
the longest lexeme loses no text of the grammar. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from puna.grammar.gbnf.nodes import Chars, Node, Ref, Rules, Seq, Token, children
from puna.grammar.gbnf.rules import ROOT, inner_first

MAX_SIZE = 1000
"""Most characters, written out, of a rule that may be part of a lexeme."""

MAX_DEPTH = 60
"""Deepest nesting, rules written out, of such a rule: the engine's parser of regular expressions has a limit as well."""


@dataclass(eq=False, slots=True)
class Lexeme:
    """A node that is read in one go."""

    node: Node


@dataclass(eq=False, slots=True)
class Call:
    """A rule that is read in parts."""

    name: str


@dataclass(eq=False, slots=True)
class Group:
    """Parts in order (`Seq`), one of several (`Alt`) or a repetition of one (`Repeat`), as `node` says."""

    node: Node
    parts: list[Part]


Part = Lexeme | Call | Group | Token

Plan = dict[str, Part]
"""Rules by name, `root` among them."""


class Cutter:
    """Cuts rules into lexemes, the largest first; `split` makes one smaller."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._sizes = _Sizes(rules)
        self._split: set[int] = set()
        self._runs: dict[tuple[int, ...], Seq] = {}
        self.whole = True
        """Whether lexemes may be longer than a character."""

    def split(self, node: Node) -> None:
        """Read the node's parts one by one from now on."""
        self._split.add(id(node))
        if isinstance(node, Ref):
            self._split.add(id(self._rules[node.name]))

    def cut(self) -> Plan:
        """The rules that `root` needs, in parts."""
        made: Plan = {}
        queue = [ROOT]
        while queue:
            name = queue.pop()
            if name not in made:
                made[name] = self._part(self._rules[name])
                queue += [call.name for call in _calls(made[name])]
        return made

    def _part(self, node: Node) -> Part:
        if isinstance(node, Token):
            return node
        if isinstance(node, Chars) or self._is_lexeme(node):
            return Lexeme(node)
        if isinstance(node, Ref):
            return Call(node.name)
        if isinstance(node, Seq):
            return Group(node, [self._part(item) for item in self._merged(node.items)])
        return Group(node, [self._part(child) for child in children(node)])

    def _is_lexeme(self, node: Node) -> bool:
        return self.whole and id(node) not in self._split and self._sizes.is_regular(node)

    def _merged(self, items: list[Node]) -> list[Node]:
        """The items, with those side by side that can be one lexeme put together."""
        found: list[Node] = []
        run: list[Node] = []
        for item in [*items, None]:
            if item is not None and (isinstance(item, Chars) or self._is_lexeme(item)):
                run.append(item)
                continue
            found += self._joined(run) if len(run) < len(items) else run
            run = []
            if item is not None:
                found.append(item)
        return found

    def _joined(self, run: list[Node]) -> list[Node]:
        if len(run) < 2:
            return run
        key = tuple(map(id, run))
        whole = self._runs.setdefault(key, Seq(run))
        return [whole] if self._is_lexeme(whole) else run


class _Sizes:
    """Which nodes are regular, and small enough to be written out."""

    def __init__(self, rules: Rules) -> None:
        self._known: dict[str, tuple[int, int]] = {}
        self._nodes: dict[int, tuple[int, int]] = {}
        for name in inner_first(rules):
            self._known[name] = self._measure(rules[name])

    def is_regular(self, node: Node) -> bool:
        size, depth = self._measure(node)
        return size <= MAX_SIZE and depth <= MAX_DEPTH

    def _measure(self, node: Node) -> tuple[int, int]:
        """Characters and levels once all rules are written out; too many characters for what is not regular."""
        if id(node) not in self._nodes:
            self._nodes[id(node)] = self._count(node)
        return self._nodes[id(node)]

    def _count(self, node: Node) -> tuple[int, int]:
        if isinstance(node, Chars):
            return 1, 1
        if isinstance(node, Token):
            return MAX_SIZE + 1, 1
        if isinstance(node, Ref):  # a rule that is not known yet contains itself
            return self._known.get(node.name, (MAX_SIZE + 1, 1))
        below = [self._measure(child) for child in children(node)]
        size = sum(size for size, _ in below)
        return min(size, MAX_SIZE + 1), 1 + max((depth for _, depth in below), default=0)


def _calls(part: Part) -> Iterator[Call]:
    if isinstance(part, Call):
        yield part
    elif isinstance(part, Group):
        for inner in part.parts:
            yield from _calls(inner)
