"""How long an answer has been thinking, and the tokens that end it. Pure: everything follows from the tokens so far."""

from __future__ import annotations

from collections import deque

from puna.types import Thinking

PATIENCE = 4
"""Tokens beyond the budget that are waited for the rest of a character."""


class ThinkingTracker:
    """Watches one answer. Feed it every token; while `due` is a token, that one has to come next.

    Thinking that runs out of budget is ended with the message, and one that begins when nothing is left without it. An
    ending that is not written as it should be, because a grammar has no place for it, is given up for that thinking.
    """

    def __init__(self, thinking: Thinking) -> None:
        self._begin, self._end = thinking.begin.encode(), thinking.end.encode()
        self._keep = max(len(self._begin), len(self._end), 4) - 1
        self._close = thinking.close
        self._whole = (*thinking.message, *thinking.close)
        self._left = thinking.budget if thinking.budget >= 0 else None
        """Tokens that may still be thought; None for no limit."""
        self._tail = b""
        self._recent: deque[int] = deque(maxlen=len(self._whole))
        """As many tokens as tell how much of an ending a dead worker has written."""
        self._open = thinking.open
        self._spoken = True
        """Whether the present thinking is to be ended with the message."""
        self._said = False
        """Whether the message has come before."""
        self._given_up = False
        self._over = 0
        """Tokens beyond the budget."""
        self._ending: tuple[int, ...] = ()
        self._check()

    @property
    def due(self) -> int | None:
        """The token that has to come next, None while any may."""
        return self._ending[0] if self._ending else None

    def feed(self, token: int, piece: bytes) -> None:
        """Take the next token, with its text, control tokens' included."""
        self._recent.append(token)
        was_open, ending = self._open, self._ending
        self._read(piece)
        if ending:
            self._ending = ending[1:] if token == ending[0] else ()
            self._given_up = token != ending[0]
            if not self._ending and not self._given_up:
                self._open = self._spoken = False
            return
        if was_open and self._open and self._left is not None:
            self._over += self._left == 0
            self._left = max(0, self._left - 1)
        self._check()

    def stop(self) -> None:
        """End the thinking, and let no other begin. Goes on with an ending whose beginning is there already."""
        self._left = 0
        self._spoken = self._spoken and self._open
        if self._ending:
            return
        self._given_up = False
        self._check()
        whole, recent = self._ending, tuple(self._recent)
        for n in range(min(len(whole) - 1, len(recent)), 0, -1):
            if recent[-n:] == whole[:n]:
                self._ending = whole[n:]
                return

    def _check(self) -> None:
        if not self._open or self._left != 0 or self._given_up or self._ending:
            return
        if self._over >= PATIENCE or not _cut_off(self._tail):
            self._ending = self._whole if self._spoken else self._close

    def _read(self, piece: bytes) -> None:
        self._tail += piece
        while mark := self._end if self._open else self._begin:
            found = self._tail.find(mark)
            if found < 0:
                break
            self._tail = self._tail[found + len(mark) :]
            self._open = not self._open
            if self._open:
                self._spoken = (self._left != 0 or self._spoken) and not self._said
                self._given_up, self._over = False, 0
            else:
                self._spoken = self._spoken and self._left != 0
                self._said = self._said or tuple(self._recent) == self._whole
        self._tail = self._tail[-self._keep :]


def _cut_off(text: bytes) -> bool:
    """Whether the text ends within a character."""
    for n, byte in enumerate(reversed(text[-3:]), 1):
        if byte & 0xC0 != 0x80:
            return byte >= 0xC0 and n < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4)
    return False
