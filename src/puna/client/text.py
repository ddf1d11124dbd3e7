"""Token bytes to text: whole characters only, nothing of a stop string, nothing that is indented too little.

All codecs give the same text however the input is split, and take time linear in it.
"""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Sequence

_utf8 = codecs.getincrementaldecoder("utf-8")


class _Node:
    """A prefix of one or more stop strings, in the automaton of Aho and Corasick."""

    __slots__ = ("depth", "fall", "next", "word")

    def __init__(self, depth: int) -> None:
        self.next: dict[str, _Node] = {}
        self.depth = depth
        """Characters of the prefix: how much of the text's end must be held back here."""
        self.fall: _Node | None = None
        """The longest proper suffix of this prefix that is a prefix too; None for the empty prefix."""
        self.word = ""
        """The longest stop string that ends here."""


def _automaton(stops: Sequence[str]) -> _Node:
    root = _Node(0)
    for stop in stops:
        node = root
        for char in stop:
            node = node.next.setdefault(char, _Node(node.depth + 1))
        node.word = stop
    queue: deque[_Node] = deque()
    for child in root.next.values():
        child.fall = root
        queue.append(child)
    while queue:
        node = queue.popleft()
        for char, child in node.next.items():
            fall = node.fall
            while fall is not None and char not in fall.next:
                fall = fall.fall
            child.fall = root if fall is None else fall.next[char]
            # A stop string that ends here from the start of the prefix is longer than any that ends in its suffix.
            child.word = child.word or child.fall.word
            queue.append(child)
    return root


class StopMatcher:
    """Passes text on up to the first stop string.

    The stop string whose last character comes first wins; of several that end on the same character, the longest. So
    the cut never waits for more text than the match itself. Text that may be the beginning of a stop string is held
    back, and passed on once, when it turns out not to be one.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        """Empty stop strings are ignored."""
        self._root = self._node = _automaton([stop for stop in stops if stop])
        self._held = ""
        self.stopped: str | None = None
        """The stop string that was found."""

    def feed(self, text: str) -> str:
        """Return what can be passed on now; nothing any more once a stop string was found."""
        root = self._root
        if not root.next:
            return text
        if self.stopped is not None:
            return ""
        node = self._node
        for at, char in enumerate(text):
            while True:
                step = node.next.get(char)
                if step is not None:
                    node = step
                    break
                if node.fall is None:
                    break
                node = node.fall
            if node.word:
                self.stopped = node.word
                whole = self._held + text[: at + 1]
                self._held = ""
                return whole[: len(whole) - len(node.word)]
        self._node = node
        whole = self._held + text
        cut = len(whole) - node.depth
        self._held = whole[cut:]
        return whole[:cut]

    def finish(self) -> str:
        """Return what was held back: no more text comes."""
        held, self._held = self._held, ""
        self._node = self._root
        return held


class IndentFilter:
    """Passes text on up to a line that begins with too few blanks.

    The first line is let pass. Every other one must begin with `n_indent` blanks or tabs before anything else comes, its
    own end included: an empty line is indented too little. What is passed on then still has the line's blanks.
    """

    def __init__(self, n_indent: int) -> None:
        """0 lets everything pass."""
        self._n_indent = n_indent
        self._blanks = -1
        """Blanks that the present line has begun with; -1 past them, and in the first line."""
        self.cut = False
        """Whether such a line has come."""

    def feed(self, text: str) -> str:
        """Return what can be passed on; nothing any more after the cut."""
        if not self._n_indent:
            return text
        if self.cut:
            return ""
        at = 0
        while at < len(text):
            if self._blanks < 0:
                at = text.find("\n", at) + 1
                if not at:
                    return text
                self._blanks = 0
            elif text[at] in " \t":
                self._blanks += 1
                at += 1
            elif self._blanks < self._n_indent:
                self.cut = True
                return text[:at]
            else:
                self._blanks = -1
        return text


class TextStream:
    """Bytes of tokens in, text out.

    Each maximal invalid sequence of bytes becomes one U+FFFD, just as `bytes.decode("utf-8", "replace")` does it with
    the whole input.
    """

    def __init__(self, stops: Sequence[str] = (), n_indent: int = 0) -> None:
        self._decoder = _utf8("replace")
        self._matcher = StopMatcher(stops)
        self._indent = IndentFilter(n_indent)

    @property
    def stopped(self) -> str | None:
        """The stop string that ended the text, None while there is none."""
        return self._matcher.stopped

    @property
    def outdented(self) -> bool:
        """Whether the text was cut at a line that is indented too little; that comes before any stop string."""
        return self._indent.cut

    def feed(self, data: bytes) -> str:
        """Return the text that these bytes make safe to show."""
        return self._indent.feed(self._matcher.feed(self._decoder.decode(data)))

    def finish(self) -> str:
        """Return the rest: text held back, and U+FFFD for a character that never became whole."""
        return self._indent.feed(self._matcher.feed(self._decoder.decode(b"", True)) + self._matcher.finish())
