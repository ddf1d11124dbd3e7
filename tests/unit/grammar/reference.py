"""Ways to tell whether a text belongs to a grammar that do without the code under test, and grammars to try them on."""

from __future__ import annotations

import random
import sys

from llguidance import LLMatcher, LLTokenizer

from puna.grammar.gbnf.nodes import Alt, Chars, Node, Ref, Repeat, Rules, Seq

BYTES = LLTokenizer("byte")


def engine_accepts(grammar: str, text: str) -> bool:
    """Whether the constraint engine lets the text through, byte by byte, and lets it end there."""
    matcher = LLMatcher(BYTES, grammar, log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    for byte in text.encode():
        if matcher.is_stopped() or not matcher.validate_tokens([byte]):
            return False
        matcher.consume_token(byte)
    return bool(matcher.is_accepting())


def lark_accepts(lark: str, text: str) -> bool:
    return engine_accepts(LLMatcher.grammar_from_lark(lark), text)


class Reference:
    """Matches by following every reading at once, character by character."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def accepts(self, text: str) -> bool:
        self._text = text
        self._known: dict[tuple[int, int], frozenset[int]] = {}
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(100_000)  # a level of the grammar for each character is nothing special
        try:
            return len(text) in self._ends(self._rules["root"], 0)
        finally:
            sys.setrecursionlimit(before)

    def _ends(self, node: Node, at: int) -> frozenset[int]:
        """Where the node may end that begins at `at`."""
        key = id(node), at
        if key not in self._known:
            self._known[key] = frozenset(self._find(node, at))
        return self._known[key]

    def _find(self, node: Node, at: int) -> set[int]:
        if isinstance(node, Chars):
            return {at + 1} if at < len(self._text) and ord(self._text[at]) in node.chars else set()
        if isinstance(node, Ref):
            return set(self._ends(self._rules[node.name], at))
        if isinstance(node, Alt):
            return {end for option in node.options for end in self._ends(option, at)}
        if isinstance(node, Seq):
            places = {at}
            for item in node.items:
                places = {end for place in places for end in self._ends(item, place)}
            return places
        assert isinstance(node, Repeat)
        return self._repeat(node, at)

    def _repeat(self, node: Repeat, at: int) -> set[int]:
        places, found, count = {at}, set(), 0
        limit = len(self._text) + node.low + 1 if node.high is None else node.high
        while places and count <= limit:
            if count >= node.low:
                found |= places
            if count == limit:
                break
            places = {end for place in places for end in self._ends(node.item, place)}
            count += 1
            if count > node.low and places <= found:
                break
        return found


class Speaker:
    """Says random texts of a grammar."""

    def __init__(self, rules: Rules, seed: int) -> None:
        self._rules = rules
        self._random = random.Random(seed)
        self._left = 0

    def text(self, patience: int = 40) -> str | None:
        """A text, or None if none came to an end in time."""
        self._left = patience
        try:
            return self._say(self._rules["root"])
        except OverflowError:
            return None

    def _say(self, node: Node) -> str:
        self._left -= 1
        if self._left < 0:
            raise OverflowError
        if isinstance(node, Chars):
            first, last = self._random.choice(node.chars.ranges)
            return chr(self._random.randint(first, min(last, first + 3)))
        if isinstance(node, Ref):
            return self._say(self._rules[node.name])
        if isinstance(node, Alt):
            return self._say(self._random.choice(node.options))
        if isinstance(node, Seq):
            return "".join(self._say(item) for item in node.items)
        assert isinstance(node, Repeat)
        most = node.low + 2 if node.high is None else min(node.high, node.low + 3)
        return "".join(self._say(node.item) for _ in range(self._random.randint(node.low, most)))


NAMES = ("root", "x", "y-1", "z")
_CHARS = ("[ab]", "[a-c]", "[^a]", '"a"', '"ab"', '"abc"', '"b"', '""', ".", '"é"', "[à-é]", '"\\x61"')
_TIMES = ("*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}")


class RandomGrammars:
    """Makes GBNF texts, many of which are refused, over an alphabet so small that there are always several readings."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def grammar(self) -> str:
        return "\n".join(f"{name} ::= {self._body(3)}" for name in NAMES)

    def _body(self, depth: int) -> str:
        choose = self._random
        kind = choose.random()
        if depth == 0 or kind < 0.3:
            return choose.choice(_CHARS if kind < 0.2 or choose.random() < 0.6 else NAMES)
        if kind < 0.5:
            return self._body(depth - 1) + choose.choice(_TIMES)
        joint = " " if kind < 0.75 else " | "
        return "(" + joint.join(self._body(depth - 1) for _ in range(choose.randint(2, 3))) + ")"


def variations(text: str, choose: random.Random) -> list[str]:
    """The text and some near to it."""
    found = [text, text + text]
    for _ in range(4):
        at = choose.randint(0, len(text))
        found += [text[:at] + choose.choice("abcé\n") + text[at:], text[:at] + text[at + 1 :], text[:at]]
    return found
