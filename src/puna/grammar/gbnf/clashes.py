"""Finds lexemes that would swallow what belongs to the next one. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from puna.grammar.charset import CharSet
from puna.grammar.gbnf.automaton import Alphabet, Automaton, Builder, Overlap, overlap
from puna.grammar.gbnf.lexemes import Call, Cutter, Group, Lexeme, Part, Plan
from puna.grammar.gbnf.nodes import Chars, Node, Ref, Repeat, Rules, Seq, Token, children
from puna.grammar.gbnf.rules import ROOT, is_nullable, nullable_rules

MAX_STEPS = 200_000
"""Work spent on finding large lexemes, before single characters are taken instead."""


def plan(rules: Rules) -> Plan:
    """The rules with their lexemes marked, such that taking the longest lexeme loses nothing."""
    cutter = Cutter(rules)
    budget = iter(range(MAX_STEPS))
    automata = _Automata(rules, budget)
    while True:
        made = cutter.cut()
        try:
            clashing = _Places(rules, made, budget).clashing(automata)
        except StopIteration:
            cutter.whole = False
            return cutter.cut()
        if not clashing:
            return made
        for node in clashing:
            cutter.split(node)


class _Automata:
    """Automata and overlaps of lexemes, kept while lexemes are cut again and again."""

    def __init__(self, rules: Rules, budget: Iterator[int]) -> None:
        self._builder = Builder(rules, Alphabet(_charsets(rules)))
        self._budget = budget
        self._made: dict[int, tuple[Node, Automaton]] = {}
        self._overlaps: dict[tuple[int, int], Overlap] = {}

    def of(self, node: Node) -> Automaton:
        if id(node) not in self._made:
            self._made[id(node)] = node, self._builder.build(node)
        return self._made[id(node)][1]

    def overlap(self, a: Node, b: Node) -> Overlap:
        key = id(a), id(b)
        if key not in self._overlaps:
            self._overlaps[key] = overlap(self.of(a), self.of(b), self._budget)
        return self._overlaps[key]


class _Places:
    """Every lexeme and token of a plan by number, with what may come after each: sets of numbers, a bit a place."""

    def __init__(self, rules: Rules, plan: Plan, budget: Iterator[int]) -> None:
        self._budget = budget
        self._empty = nullable_rules(rules)
        self._numbers: dict[int, int] = {}
        self._nodes: list[Node] = []
        self._next: list[int] = []
        self._starts: list[int] = []
        """What each lexeme may begin with; nothing for tokens, which are no text."""
        self._edges: dict[str, tuple[int, int]] = dict.fromkeys(plan, (0, 0))
        """First and last places of each rule."""
        grown = True
        while grown:
            before = dict(self._edges)
            linked = list(self._next)
            for name, part in plan.items():
                self._edges[name] = self._visit(part)
            grown = before != self._edges or linked != self._next
        self._start = self._edges[ROOT][0]

    def clashing(self, automata: _Automata) -> list[Node]:
        """The lexemes that have to be smaller. Raises `StopIteration` when that takes too much work to find out."""
        self._starts = [0 if isinstance(node, Token) else automata.of(node).starts for node in self._nodes]
        follow = [self._characters(places) for places in self._next]
        found: dict[int, Node] = {}
        for group in self._together(automata):
            for a in group:
                for b in group:
                    first, second = self._nodes[a], self._nodes[b]
                    if isinstance(second, Chars) or not self._starts[a] & self._starts[b] or not follow[a]:
                        continue
                    next(self._budget)
                    if follow[a] & automata.overlap(first, second).extends:
                        found[id(second)] = second
        return list(found.values())

    def _together(self, automata: _Automata) -> list[list[int]]:
        """Groups of places any of which may be looked for at the same time."""
        after = list(self._next)
        grown = True
        while grown:
            grown = False
            groups = {self._start, *after}
            for group in groups:
                places = list(_numbers(group))
                for a in places:
                    for b in places:
                        if a < b and after[a] != after[b] and self._may_be_one(a, b, automata):
                            after[a] = after[b] = after[a] | after[b]
                            grown = True
        return [list(_numbers(group)) for group in {self._start, *after}]

    def _may_be_one(self, a: int, b: int, automata: _Automata) -> bool:
        first, second = self._nodes[a], self._nodes[b]
        if isinstance(first, Token) and isinstance(second, Token):
            return True
        if not self._starts[a] & self._starts[b]:
            return False
        next(self._budget)
        return automata.overlap(first, second).same

    def _characters(self, places: int) -> int:
        """What texts of these lexemes may begin with."""
        bits = 0
        for place in _numbers(places):
            bits |= self._starts[place]
        return bits

    def _visit(self, part: Part) -> tuple[int, int]:
        """First and last places of a part; notes on the way what may follow what."""
        if isinstance(part, Call):
            return self._edges[part.name]
        if not isinstance(part, Group):
            bit = 1 << self._number(part.node if isinstance(part, Lexeme) else part)
            return bit, bit
        edges = [self._visit(inner) for inner in part.parts]
        if isinstance(part.node, Seq):
            return self._visit_sequence(part, edges)
        if isinstance(part.node, Repeat) and part.node.high != 1:
            self._link(edges[0][1], edges[0][0])
        first = last = 0
        for its_first, its_last in edges:
            first |= its_first
            last |= its_last
        return first, last

    def _visit_sequence(self, group: Group, edges: list[tuple[int, int]]) -> tuple[int, int]:
        first = last = 0
        empty = True
        for part, (its_first, its_last) in zip(group.parts, edges, strict=True):
            self._link(last, its_first)
            its_empty = self._may_be_empty(part)
            if empty:
                first |= its_first
            last = last | its_last if its_empty else its_last
            empty &= its_empty
        return first, last

    def _may_be_empty(self, part: Part) -> bool:
        if isinstance(part, Call):
            return part.name in self._empty
        return is_nullable(part if isinstance(part, Token) else part.node, self._empty)

    def _number(self, node: Node) -> int:
        if id(node) not in self._numbers:
            self._numbers[id(node)] = len(self._nodes)
            self._nodes.append(node)
            self._next.append(0)
        return self._numbers[id(node)]

    def _link(self, last: int, first: int) -> None:
        for place in _numbers(last):
            self._next[place] |= first


def _numbers(bits: int) -> Iterator[int]:
    """The places of a set."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def _charsets(rules: Rules) -> Iterator[CharSet]:
    stack: list[Node] = list(rules.values())
    while stack:
        node = stack.pop()
        if isinstance(node, Chars):
            yield node.chars
        elif not isinstance(node, (Ref, Token)):
            stack += children(node)
