"""Regular expressions searched for in text that arrives in pieces, in time that grows only with its length.

The usual engines go back and forth in the text; for some expressions that takes time beyond all bounds. This one follows
every reading at once. What it has nothing for (looking ahead or behind, references back, word boundaries) is refused.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field

from puna.grammar.regex import Char, Choice, Edge, Expression, Group, Loop, RegexError, Row, parse_regex

__all__ = ["RegexError", "Search"]

MAX_PROGRAM = 2_000
"""Most instructions: each may cost a microsecond for every character of the text."""

_Instruction = tuple[str, object, int]
"""What to do, with what, and where to go on. `fork` goes on in both of its places, the first one first."""


@dataclass(slots=True)
class _Thread:
    """One reading of the text."""

    at: int
    """The next instruction."""
    start: int
    """Where the match began, in bytes of the text."""
    group: int = -1
    """Where the first group that matched something began."""
    open: int = -1
    """Where the group began that is being read."""


@dataclass(slots=True)
class _Program:
    code: list[_Instruction] = field(default_factory=list)

    def add(self, what: str, arg: object = None, to: int = -1) -> int:
        if len(self.code) >= MAX_PROGRAM:
            raise RegexError("the expression is too large")
        self.code.append((what, arg, to))
        return len(self.code) - 1


class Search:
    """Searches for one expression, anywhere in the text or (`whole`) as all of it."""

    def __init__(self, pattern: str, *, whole: bool = False) -> None:
        """Raises `RegexError` for an expression that it cannot follow."""
        self._program = _Program()
        self._begin = self._compile(parse_regex(pattern), self._program.add("match"))
        self._whole = whole
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = 0
        """Bytes that do not make a character yet."""
        self._at = 0
        self._threads: list[_Thread] = []

    def feed(self, data: bytes) -> int | None:
        """Take more text; where the first match begins, or the first of its groups that is not empty, in bytes.

        Whether there is a match is looked at whenever a piece has been taken in whole.
        """
        best: _Thread | None = None
        for byte in data:
            self._pending += 1
            char = self._decoder.decode(bytes((byte,)))
            for one in char:
                best = self._step(one, best)
            if char:
                self._at += self._pending
                self._pending = 0
        best = self._settle(best)
        if best is None:
            return None
        return best.group if best.group >= 0 else best.start

    def _step(self, char: str, best: _Thread | None) -> _Thread | None:
        """Move every reading on by a character."""
        threads, found = self._spread(best, at_end=False)
        code = ord(char)
        self._threads = []
        for thread in threads:
            what, chars, to = self._program.code[thread.at]
            if what == "char" and code in chars:  # type: ignore[operator]  # of this instruction it is a set of characters
                self._threads.append(_Thread(to, thread.start, thread.group, thread.open))
        return None if self._whole else found

    def _settle(self, best: _Thread | None) -> _Thread | None:
        """The match there is now that the text ends here for the time being."""
        return self._spread(best, at_end=True)[1]

    def _spread(self, best: _Thread | None, *, at_end: bool) -> tuple[list[_Thread], _Thread | None]:
        """The readings that wait for a character, best first, and the best one that is complete.

        A reading that is complete puts an end to those that are less good.
        """
        queue = list(self._threads)
        if best is None and (not self._whole or self._at == 0):
            queue.append(_Thread(self._begin, self._at))
        seen: set[int] = set()
        waiting: list[_Thread] = []
        queue.reverse()
        while queue:
            thread = queue.pop()
            if thread.at in seen:
                continue
            seen.add(thread.at)
            what, arg, to = self._program.code[thread.at]
            if what == "char":
                waiting.append(thread)
            elif what == "match":
                if self._whole and not at_end:
                    continue
                return waiting, thread
            else:
                queue += self._follow(thread, what, arg, to, at_end)
        return waiting, best

    def _follow(self, thread: _Thread, what: str, arg: object, to: int, at_end: bool) -> list[_Thread]:
        """Where an instruction that takes no character leads, the best last."""
        if what == "fork":
            assert isinstance(arg, int)
            return [_Thread(place, thread.start, thread.group, thread.open) for place in (to, arg)]
        if what == "edge":
            holds = self._at == 0 if arg == "^" else at_end
            return [_Thread(to, thread.start, thread.group, thread.open)] if holds else []
        if what == "open":
            return [_Thread(to, thread.start, thread.group, self._at)]
        group = thread.open if thread.group < 0 and thread.open < self._at else thread.group
        return [_Thread(to, thread.start, group, -1)]

    def _compile(self, part: Expression, to: int) -> int:
        """Add the instructions for a part that goes on at `to`; where they begin."""
        add = self._program.add
        if isinstance(part, Char):
            return add("char", part.chars, to)
        if isinstance(part, Edge):
            return add("edge", part.kind, to)
        if isinstance(part, Row):
            for item in reversed(part.items):
                to = self._compile(item, to)
            return to
        if isinstance(part, Choice):
            places = [self._compile(option, to) for option in part.options]
            begin = places.pop()
            while places:
                begin = add("fork", places.pop(), begin)
            return begin
        if isinstance(part, Group):
            return add("open", None, self._compile(part.item, add("close", None, to)))
        return self._compile_loop(part, to)

    def _compile_loop(self, loop: Loop, to: int) -> int:
        begin = to
        if loop.high is None:
            begin = self._program.add("fork")
            body = self._compile(loop.item, begin)
            self._program.code[begin] = ("fork", to, body) if loop.lazy else ("fork", body, to)
        else:
            for _ in range(loop.high - loop.low):
                body = self._compile(loop.item, begin)
                begin = self._program.add("fork", to, body) if loop.lazy else self._program.add("fork", body, to)
        for _ in range(loop.low):
            begin = self._compile(loop.item, begin)
        return begin
