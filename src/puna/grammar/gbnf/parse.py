"""GBNF text into nodes: llama.cpp's grammar format, with its escapes, comments, repetitions and token references."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from types import MappingProxyType

from puna.grammar.charset import ANY, LAST, CharSet
from puna.grammar.gbnf.nodes import Alt, Chars, GrammarError, Node, Ref, Repeat, Rules, Seq, Token, sequence

MAX_DEPTH = 50
"""Most parentheses that are open at once."""

MAX_REPEAT = 100_000

TokenId = Callable[[str], int | None]
"""The id of the one token that a text such as `<think>` stands for, or None."""

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_INT = re.compile(r"[0-9]+")
_SPACE = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
_SPACES = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_HEX = {"x": re.compile("[0-9A-Fa-f]{2}"), "u": re.compile("[0-9A-Fa-f]{4}"), "U": re.compile("[0-9A-Fa-f]{8}")}
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "[": "[", "]": "]", "-": "-"}
_REPEATS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


MAX_NAMES = 256


def token_names(text: str) -> list[str]:
    """Texts that a grammar may refer to as tokens; among them may be some that it does not."""
    found = dict.fromkeys(re.findall(r"<[^<>\[\]\r\n]{1,100}>", text))
    return list(found)[:MAX_NAMES]


def parse(text: str, token_id: TokenId = lambda _text: None, preserved: Mapping[str, int] = MappingProxyType({})) -> Rules:
    """The rules of a grammar. Raises `GrammarError` that names the line.

    `preserved` tokens may stand in the place of their texts.
    """
    return _Parser(text, token_id, preserved).rules()


class _Parser:
    def __init__(self, text: str, token_id: TokenId, preserved: Mapping[str, int]) -> None:
        self._text = text
        self._token_id = token_id
        self._preserved = {text: id for text, id in preserved.items() if text}
        longest_first = sorted(self._preserved, key=len, reverse=True)
        self._split = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")") if longest_first else None
        self._at = 0
        self._newlines = [found.start() for found in re.finditer("\n", text)]
        self._depth = 0
        self._name = ""

    def rules(self) -> Rules:
        found: Rules = {}
        self._skip(_SPACES)
        while self._at < len(self._text):
            name, node = self._rule()
            found[name] = node
            self._skip(_SPACES)
        return found

    def _rule(self) -> tuple[str, Node]:
        self._name = name = self._take(_NAME, "the name of a rule")
        self._skip(_SPACE)
        if not self._text.startswith("::=", self._at):
            raise self._error("'::=' is expected after the name of a rule")
        self._at += 3
        self._skip(_SPACES)
        node = self._alternatives(nested=False)
        if self._at < len(self._text) and self._text[self._at] not in "\r\n":
            raise self._error("the end of the rule is expected")
        return name, node

    def _alternatives(self, *, nested: bool) -> Node:
        options = [self._sequence(nested=nested)]
        while self._here() == "|":
            self._at += 1
            self._skip(_SPACES)
            options.append(self._sequence(nested=nested))
        return options[0] if len(options) == 1 else Alt(options)

    def _sequence(self, *, nested: bool) -> Node:
        space = _SPACES if nested else _SPACE
        items: list[Node] = []
        while True:
            line = self._line()
            char = self._here()
            if char in _REPEATS or char == "{":
                self._repeat(items, char, space, line)
            elif (item := self._item(char, line)) is not None:
                items.append(item)
            else:
                return sequence(items)
            self._skip(space)

    def _item(self, char: str, line: int) -> Node | None:
        """The next item, None if there is none."""
        if char == '"':
            return self._literal()
        if char == "[":
            return self._class()
        if char == "(":
            return self._group()
        if char == ".":
            self._at += 1
            return Chars(ANY)
        if char in ("<", "!"):
            return self._token()
        if char and _NAME.match(char):
            return Ref(self._take(_NAME, "a name"), line)
        return None

    def _group(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(f"parentheses are nested deeper than {MAX_DEPTH} levels")
        self._at += 1
        self._skip(_SPACES)
        node = self._alternatives(nested=True)
        if self._here() != ")":
            raise self._error("')' is expected")
        self._at += 1
        self._depth -= 1
        return node

    def _literal(self) -> Node:
        self._at += 1
        chars: list[str] = []
        while self._here() != '"':
            chars.append(chr(self._char("the text in quotes")))
        self._at += 1
        text = "".join(chars)
        parts = [text] if self._split is None else [part for part in self._split.split(text) if part]
        return _spelled(text) if len(parts) < 2 and text not in self._preserved else Seq([self._or_token(part) for part in parts])

    def _or_token(self, text: str) -> Node:
        """The text, or the preserved token that it is the text of."""
        id = self._preserved.get(text)
        return _spelled(text) if id is None else Alt([_spelled(text), Token(id)])

    def _class(self) -> Node:
        self._at += 1
        negated = self._here() == "^"
        self._at += negated
        ranges: list[tuple[int, int]] = []
        while self._here() != "]":
            first = last = self._char("the character class")
            if self._here() == "-" and self._text[self._at + 1 : self._at + 2] != "]":
                self._at += 1
                last = self._char("the character class")
                if last < first:
                    raise self._error("a range of characters ends before it begins")
            ranges.append((first, last))
        self._at += 1
        if not ranges:
            raise self._error("a character class is empty")
        chars = CharSet(ranges)
        return Chars(chars.complement() if negated else chars)

    def _char(self, where: str) -> int:
        """The next character of a literal or a class."""
        char = self._here()
        if not char:
            raise self._error(f"{where} is not closed")
        self._at += 1
        if char != "\\":
            return ord(char)
        escape = self._here()
        self._at += 1
        if escape in _ESCAPES:
            return ord(_ESCAPES[escape])
        if escape not in _HEX or not escape:
            raise self._error(f"'\\{escape}' is not an escape")
        code = int(self._take(_HEX[escape], f"hexadecimal digits after '\\{escape}'"), 16)
        if code > LAST or 0xD800 <= code <= 0xDFFF:
            raise self._error(f"{code:X} is not the code of a character")
        return code

    def _token(self) -> Node:
        negated = self._here() == "!"
        self._at += negated
        if self._here() != "<":
            raise self._error("'<' is expected after '!'")
        end = self._text.find(">", self._at)
        if end < 0:
            raise self._error("'>' is expected after the name of a token")
        name = self._text[self._at : end + 1]
        number = re.fullmatch(r"<\[([0-9]{1,9})\]>", name)
        id = int(number.group(1)) if number else self._token_id(name)
        if id is None:
            raise self._error(f"{name[:100]!r} is not one token of this model's vocabulary")
        self._at = end + 1
        return Token(id, negated)

    def _repeat(self, items: list[Node], char: str, space: re.Pattern[str], line: int) -> None:
        if not items:
            raise self._error(f"there is nothing before '{char}' to repeat")
        self._at += 1
        low, high = _REPEATS[char] if char in _REPEATS else self._bounds(space)
        items[-1] = Repeat(items[-1], low, high, line)

    def _bounds(self, space: re.Pattern[str]) -> tuple[int, int | None]:
        low = self._count(space)
        high: int | None = low
        if self._here() == ",":
            self._at += 1
            self._skip(space)
            high = None if self._here() == "}" else self._count(space)
        if self._here() != "}":
            raise self._error("'}' is expected")
        self._at += 1
        if high is not None and high < low:
            raise self._error(f"a repetition of at least {low} and at most {high} times is impossible")
        return low, high

    def _count(self, space: re.Pattern[str]) -> int:
        self._skip(space)
        digits = self._take(_INT, "a number of repetitions")
        if len(digits) > 9 or int(digits) > MAX_REPEAT:
            raise self._error(f"more than {MAX_REPEAT} repetitions are not possible")
        self._skip(space)
        return int(digits)

    def _here(self) -> str:
        """The next character, empty at the end."""
        return self._text[self._at : self._at + 1]

    def _skip(self, space: re.Pattern[str]) -> None:
        found = space.match(self._text, self._at)
        if found:
            self._at = found.end()

    def _take(self, pattern: re.Pattern[str], what: str) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise self._error(f"{what} is expected")
        self._at = found.end()
        return found.group()

    def _line(self) -> int:
        return bisect_left(self._newlines, self._at) + 1

    def _error(self, what: str) -> GrammarError:
        start = self._text.rfind("\n", 0, self._at) + 1
        rest = self._text[self._at : self._at + 20].split("\n")[0]
        near = f", at {rest!r}" if rest else ""
        rule = f" (in rule '{self._name[:50]}')" if self._name else ""
        return GrammarError(f"line {self._line()}, column {self._at - start + 1}: {what}{near}{rule}")


def _spelled(text: str) -> Node:
    return sequence([Chars(CharSet.of(char)) for char in text])
