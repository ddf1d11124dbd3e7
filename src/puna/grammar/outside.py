"""What is left of an output, as it arrives, when some stretches are taken out. Pure."""

from __future__ import annotations

from puna.types import Span


class Outside:
    """Passes on what lies outside of spans. What may be the beginning of one is held back until that is known."""

    def __init__(self, span: Span) -> None:
        self._begin = span.begin.encode()
        self._end = span.end.encode()
        self._again = span.again
        self._inside = span.open
        self._may_begin = True
        self._rest = b""
        self._at = 0
        """Where the rest begins."""

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Take more; pieces that lie outside, each with its place in the output."""
        self._rest += data
        pieces: list[tuple[int, bytes]] = []
        while self._step(pieces):
            pass
        return pieces

    def _step(self, pieces: list[tuple[int, bytes]]) -> bool:
        """Whether there is more to do."""
        rest = self._rest
        if self._inside:
            found = rest.find(self._end)
            if found < 0:
                self._drop(max(0, len(rest) - len(self._end) + 1))
                return False
            self._drop(found + len(self._end))
            self._inside, self._may_begin = False, self._again
            return True
        if not self._may_begin or not self._begin:
            self._pass(len(rest), pieces)
            return False
        if self._again:
            found = rest.find(self._begin)
            self._pass(found if found >= 0 else len(rest) - _overlap(rest, self._begin), pieces)
            self._inside = found >= 0
            return self._inside
        body = rest.lstrip()
        if body.startswith(self._begin):
            self._inside = True
            return True
        self._may_begin = self._begin.startswith(body)
        return not self._may_begin

    def _pass(self, n: int, pieces: list[tuple[int, bytes]]) -> None:
        if n:
            pieces.append((self._at, self._rest[:n]))
            self._drop(n)

    def _drop(self, n: int) -> None:
        self._rest = self._rest[n:]
        self._at += n


def _overlap(text: bytes, word: bytes) -> int:
    """How many bytes at the text's end may be the beginning of the word."""
    return next((n for n in range(min(len(text), len(word) - 1), 0, -1) if word.startswith(text[-n:])), 0)
