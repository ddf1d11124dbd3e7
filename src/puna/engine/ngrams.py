"""Drafts from text that repeats itself: what followed the last few tokens when they came before.

Where it comes back with small changes, the copy is followed across them: after a word that differs the guess is that the
rest goes on as before.

Pure. Three forms: `SuffixSearch` searches the running text, `SuffixMap` keeps an index of it, `SharedDrafter` asks an index
of its own text first and then what all requests have in common.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

LEAST = 3
"""Tokens that have to be the same before a place counts as known."""

LONGEST = 32
"""More equal tokens than this say nothing further."""

TRIES = 8
"""Most places that are looked at, the newest first."""

WIDTH = 4
"""Bytes of a token in the text that is searched."""

MOST_HITS = 8 * TRIES
"""Most hits of a search, those between two tokens included."""

SURE = 8
"""Equal tokens from which on a place is followed wherever another one was followed before."""

TRUST = 24
"""Most equal tokens of a copy that count for its standing."""

DIFFERENCE = 8
"""How much of its standing a copy loses with a token that differs."""

JUMPS = (-1, 1, -2, 2, -3, 3)
"""By how many tokens a copy may have got longer or shorter, the likeliest first."""


@dataclass(frozen=True, slots=True)
class Guess:
    """Tokens that may come next."""

    tokens: tuple[int, ...]
    match: int
    """How many of the last tokens this rests on; within a copy, how many since its last difference."""


class Drafter(Protocol):
    """Follows one text and guesses how it goes on."""

    def feed(self, tokens: Sequence[int]) -> None:
        """Take further tokens of the text."""

    def guess(self, most: int) -> Guess | None:
        """Up to `most` tokens that may come next; None without an idea."""


class Copy:
    """Follows the place in a text that its end repeats, across tokens that differ, come in between or are left out."""

    def __init__(self, tokens: list[int]) -> None:
        """`tokens` is the text, to which its owner appends."""
        self._tokens = tokens
        self.at = 0
        """Position of what should come next; 0 without a copy."""
        self.run = 0
        """Equal tokens since the last difference."""
        self._standing = 0

    def follow(self, at: int, match: int) -> None:
        """Follow the place at `at`, before which so many tokens are the same as at the end."""
        if at != self.at:
            self.at, self._standing = at, min(match, TRUST)
        self.run = match

    def feed(self) -> None:
        """Take notice of a token that was appended."""
        tokens, at = self._tokens, self.at
        if not at:
            return
        token = tokens[-1]
        self.at = at + 1
        if tokens[at] == token:
            self.run += 1
            self._standing = min(self._standing + 1, TRUST)
            return
        if self.run == 0 and self._jump(token):
            return
        self.run = 0
        self._standing -= DIFFERENCE
        if self._standing <= 0:
            self.at = 0

    def _jump(self, token: int) -> bool:
        """After a second difference, go on behind the same token nearby, if it stands there."""
        tokens, last = self._tokens, len(self._tokens) - 1
        for jump in JUMPS:
            if 0 < (at := self.at + jump) <= last and tokens[at - 1] == token:
                self.at, self.run = at, 1
                return True
        return False

    def guess(self, most: int, at: int, match: int) -> Guess | None:
        """What comes next, when `match` tokens before `at` are the same as at the end; 0 for none."""
        if match and (match >= SURE or not self.at or at == self.at):
            self.follow(at, match)
        if not self.at:
            return None
        tokens = self._tokens
        return Guess(_continued(tokens[self.at : self.at + most], most), self.run)


class SuffixSearch:
    """Searches the text itself: no index, and time in proportion to the text, though a tiny part of what a step takes."""

    def __init__(self) -> None:
        self._text = bytearray()
        self._tokens: list[int] = []
        self._copy = Copy(self._tokens)

    def feed(self, tokens: Sequence[int]) -> None:
        self._text += array("i", tokens).tobytes()
        for token in tokens:
            self._tokens.append(token)
            self._copy.feed()

    def guess(self, most: int) -> Guess | None:
        start, match = self._find()
        return self._copy.guess(most, start // WIDTH, match)

    def _find(self) -> tuple[int, int]:
        """The byte after the longest match with the end, and that one's tokens; 0 without one."""
        text = self._text
        if len(text) < LEAST * WIDTH:
            return 0, 0
        key = bytes(text[-LEAST * WIDTH :])
        limit = len(text) - WIDTH
        best = start = n_tried = 0
        for _ in range(MOST_HITS):
            at = text.rfind(key, 0, limit)
            if at < 0 or best == LONGEST or n_tried == TRIES:
                break
            limit = at + len(key) - 1
            if at % WIDTH == 0:
                n_tried += 1
                if (match := self._match(at + len(key))) > best:
                    best, start = match, at + len(key)
        return start, best

    def _match(self, stop: int) -> int:
        """How many tokens before the byte `stop` are the same as those before the end."""
        text, end, match = self._text, len(self._text), LEAST
        while match < LONGEST and stop >= WIDTH * (match + 1):
            at = WIDTH * (match + 1)
            if text[stop - at : stop - at + WIDTH] != text[end - at : end - at + WIDTH]:
                break
            match += 1
        return match


class SuffixMap:
    """Keeps for every few tokens where they last stood, which is linked to where they stood before."""

    def __init__(self) -> None:
        self._tokens: list[int] = []
        self._copy = Copy(self._tokens)
        self._last: dict[tuple[int, ...], int] = {}
        """For every `LEAST` tokens, the position after their last place."""
        self._before = array("i", [])
        """For every position, the one that the tokens before it had led to earlier; 0 for none."""

    def feed(self, tokens: Sequence[int]) -> None:
        known, last, before = self._tokens, self._last, self._before
        for token in tokens:
            at = len(known)
            key = tuple(known[at - LEAST :]) if at >= LEAST else None
            known.append(token)
            self._copy.feed()
            if key is None:
                before.append(0)
            else:
                before.append(last.get(key, 0))
                last[key] = at

    def guess(self, most: int) -> Guess | None:
        tokens = self._tokens
        at = self._last.get(tuple(tokens[-LEAST:]), 0) if len(tokens) >= LEAST else 0
        best = start = 0
        for _ in range(TRIES):
            if not at or best == LONGEST:
                break
            if (match := self._match(at)) > best:
                best, start = match, at
            at = self._before[at]
        return self._copy.guess(most, start, best)

    def _match(self, at: int) -> int:
        """How many tokens before a position are the same as those before the end."""
        tokens, end, match = self._tokens, len(self._tokens), LEAST
        while match < LONGEST and match < at and tokens[at - match - 1] == tokens[end - match - 1]:
            match += 1
        return match


class SharedNgrams:
    """What followed every few tokens in all requests, as far as most of them agree. Bounded: the oldest falls out first."""

    def __init__(self, capacity: int = 1 << 16) -> None:
        self._capacity = capacity
        self._next: OrderedDict[tuple[int, ...], tuple[int, int]] = OrderedDict()
        """For `LEAST` tokens, what mostly followed, and by how many times more often than anything else."""

    def __len__(self) -> int:
        return len(self._next)

    def put(self, tokens: Sequence[int]) -> None:
        """Learn from a piece of text; the first `LEAST` tokens only lead to what follows."""
        known = self._next
        for at in range(LEAST, len(tokens)):
            key, token = tuple(tokens[at - LEAST : at]), tokens[at]
            held, lead = known.pop(key, (token, 0))
            if held == token:
                known[key] = held, lead + 1
            else:
                known[key] = (held, lead - 1) if lead > 1 else (token, 1)
        while len(known) > self._capacity:
            known.popitem(last=False)

    def follow(self, tokens: Sequence[int], most: int) -> tuple[int, ...]:
        """What mostly came after the last of `tokens`."""
        text = list(tokens[-LEAST:])
        while len(text) < LEAST + most and (found := self._next.get(tuple(text[-LEAST:]))) is not None:
            text.append(found[0])
        return tuple(text[LEAST:]) if len(text) > LEAST else ()


class SharedDrafter:
    """Looks in the text itself, and where that knows nothing in what requests have in common."""

    def __init__(self, shared: SharedNgrams) -> None:
        self._own = SuffixMap()
        self._shared = shared
        self._tail: list[int] = []

    def feed(self, tokens: Sequence[int]) -> None:
        self._own.feed(tokens)
        text = [*self._tail, *tokens]
        self._shared.put(text)
        self._tail = text[-LEAST:]

    def guess(self, most: int) -> Guess | None:
        own = self._own.guess(most)
        if own is not None or len(self._tail) < LEAST:
            return own
        tokens = self._shared.follow(self._tail, most)
        return Guess(tokens, LEAST) if tokens else None


def _continued(tokens: Sequence[int], most: int) -> tuple[int, ...]:
    """What was found, over and over: where it ends at the end of the text, the text goes round in circles."""
    if len(tokens) >= most:
        return tuple(tokens[:most])
    return tuple((list(tokens) * (most // len(tokens) + 1))[:most])
