"""What two lexemes have in common, found with their position automata. Pure.

The constraint engine reads a text lexeme by lexeme and always takes the longest one. So a lexeme may not be followed by
a character with which it, or another lexeme that could stand in its place, might go on: the reading in which it ends there
would be lost. `Overlap` tells whether that can happen.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from puna.grammar.charset import CharSet
from puna.grammar.gbnf.nodes import Alt, Chars, Node, Ref, Repeat, Rules, Seq


class Alphabet:
    """Splits the code points so that every set in a grammar is a union of parts; a set is then a number, a bit a part."""

    def __init__(self, sets: Iterable[CharSet]) -> None:
        self._starts = sorted({edge for chars in sets for first, last in chars.ranges for edge in (first, last + 1)})
        self._bits: dict[CharSet, int] = {}

    def bits(self, chars: CharSet) -> int:
        """The parts that make up one of the sets."""
        if chars not in self._bits:
            bits = 0
            for first, last in chars.ranges:
                low, high = bisect_left(self._starts, first), bisect_left(self._starts, last + 1)
                bits |= (1 << high) - (1 << low)
            self._bits[chars] = bits
        return self._bits[chars]


@dataclass(slots=True)
class Automaton:
    """One state a place where a character is matched. A repetition counts as one without bound, which only adds texts."""

    chars: list[int] = field(default_factory=list)
    """What each place matches, in bits of the alphabet."""
    follow: list[list[int]] = field(default_factory=list)
    """The places that may come right after each."""
    first: list[int] = field(default_factory=list)
    last: frozenset[int] = frozenset()
    starts: int = 0
    """What a text may begin with."""

    def after(self, place: int) -> int:
        """What may come right after a place."""
        bits = 0
        for following in self.follow[place]:
            bits |= self.chars[following]
        return bits


class Builder:
    """Makes automata of nodes that are regular."""

    def __init__(self, rules: Rules, alphabet: Alphabet) -> None:
        self._rules = rules
        self._alphabet = alphabet

    def build(self, node: Node) -> Automaton:
        """The automaton of one lexeme."""
        made = Automaton()
        first, last, _ = self._add(made, node)
        made.first, made.last = first, frozenset(last)
        for place in first:
            made.starts |= made.chars[place]
        return made

    def _add(self, made: Automaton, node: Node) -> tuple[list[int], list[int], bool]:
        """Add a node; its first places, its last places, and whether it may be empty."""
        if isinstance(node, Chars):
            made.chars.append(self._alphabet.bits(node.chars))
            made.follow.append([])
            place = len(made.chars) - 1
            return [place], [place], False
        if isinstance(node, Ref):
            return self._add(made, self._rules[node.name])
        if isinstance(node, Alt):
            return self._add_options(made, node.options)
        if isinstance(node, Repeat):
            first, last, empty = self._add(made, node.item)
            if node.high != 1:
                _link(made, last, first)
            return first, last, empty or node.low == 0
        assert isinstance(node, Seq)
        return self._add_sequence(made, node.items)

    def _add_options(self, made: Automaton, options: list[Node]) -> tuple[list[int], list[int], bool]:
        first: list[int] = []
        last: list[int] = []
        empty = False
        for option in options:
            its_first, its_last, its_empty = self._add(made, option)
            first += its_first
            last += its_last
            empty |= its_empty
        return first, last, empty

    def _add_sequence(self, made: Automaton, items: list[Node]) -> tuple[list[int], list[int], bool]:
        first: list[int] = []
        last: list[int] = []
        empty = True
        for item in items:
            its_first, its_last, its_empty = self._add(made, item)
            _link(made, last, its_first)
            if empty:
                first += its_first
            last = last + its_last if its_empty else its_last
            empty &= its_empty
        return first, last, empty


def _link(made: Automaton, last: list[int], first: list[int]) -> None:
    for place in last:
        made.follow[place] = list(dict.fromkeys([*made.follow[place], *first]))


@dataclass(frozen=True, slots=True)
class Overlap:
    """How one lexeme relates to another one that may stand in the same place."""

    same: bool = False
    """Whether some text is both."""
    extends: int = 0
    """Characters with which the second may go on where the first has ended."""


def overlap(a: Automaton, b: Automaton, budget: Iterator[int]) -> Overlap:
    """Follow both through every text that they can share. Raises `StopIteration` when the budget is used up."""
    same, extends = False, 0
    queue = [(x, y) for x in a.first for y in b.first if a.chars[x] & b.chars[y]]
    seen = set(queue)
    while queue:
        next(budget)
        x, y = queue.pop()
        if x in a.last:
            extends |= b.after(y)
            same |= y in b.last
        for x_next in a.follow[x]:
            wanted = a.chars[x_next]
            for y_next in b.follow[y]:
                if wanted & b.chars[y_next] and (x_next, y_next) not in seen:
                    seen.add((x_next, y_next))
                    queue.append((x_next, y_next))
    return Overlap(same, extends)
