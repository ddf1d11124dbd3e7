"""The context's cells: one interface, two layouts.

    share   give sequences a prefix that another running one has in memory
    rest    take a sequence's state out to host memory
    wake    put a state back and cut it to a prefix
    cut     drop the end of a sequence
    drop    free a sequence's cells

`UnifiedMemory` keeps all sequences in one pool of cells, where a shared prefix is stored once; `SplitMemory` gives
each sequence a stream of its own, so that nobody pays for the others' length.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from puna.engine.chunks import Chunk
from puna.llama.context import Context
from puna.llama.state import State


class MemoryFault(Exception):
    """Cells and token list disagree: the reuse must stop, not the server."""


class Memory(Protocol):
    """What the engine needs of a layout. Seats are the engine's sequence ids, lengths count tokens from position 0."""

    @property
    def can_shift(self) -> bool:
        """Whether tokens can change their positions."""

    compact: bool
    """Whether batches are only efficient while the seats in use are consecutive."""

    def rebind(self, context: Context) -> None:
        """Go on with another, empty context."""

    def share(self, source: int, targets: Iterable[tuple[int, int]]) -> None:
        """Give each (empty seat, length) of `targets` that many of the first tokens of `source`."""

    def move(self, source: int, target: int) -> None:
        """Bring everything in `source` to the empty seat `target`."""

    def rest(self, seat: int) -> State:
        """The whole state of a seat; the cells stay."""

    def wake(self, seat: int, state: State, length: int) -> None:
        """Fill the empty seat with the first `length` tokens of a state."""

    def shift(self, seat: int, keep: int, discard: int) -> None:
        """Drop `discard` tokens after the first `keep` and move the rest down. The seat must not rest before a decode."""

    def rearrange(self, seat: int, chunks: Iterable[Chunk]) -> None:
        """Move chunks of a seat that shares no cells down, in order, and drop all that follows the last one.

        The seat must not rest before a decode.
        """

    def cut(self, seat: int, length: int) -> None:
        """Leave the first `length` tokens in a seat. Raises `MemoryFault`, and the seat is empty, where that cannot be done."""

    def drop(self, seat: int) -> None:
        """Free a seat's cells."""

    def length(self, seat: int) -> int:
        """Tokens in a seat."""


class SplitMemory:
    """One stream of cells a sequence (`kv_unified = false`).

    Sharing and moving go through host memory: libllama copies a whole stream, used or not, and only at the next
    decode, which costs more than taking out and putting back the cells in use.
    """

    compact = True
    """libllama batches only sequences whose ids follow each other; a gap splits the batch."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def can_shift(self) -> bool:
        return self._context.can_shift

    def rebind(self, context: Context) -> None:
        self._context = context

    def share(self, source: int, targets: Iterable[tuple[int, int]]) -> None:
        state = self.rest(source)
        for seat, length in targets:
            self.wake(seat, state, length)

    def move(self, source: int, target: int) -> None:
        self.wake(target, self.rest(source), self.length(source))
        self.drop(source)

    def rest(self, seat: int) -> State:
        return self._context.save(seat)

    def wake(self, seat: int, state: State, length: int) -> None:
        if not self._context.load(seat, state, length):
            raise MemoryFault(f"the engine refused a state of {state.nbytes} bytes")
        self.cut(seat, length)

    def shift(self, seat: int, keep: int, discard: int) -> None:
        self._context.shift(seat, keep, discard)

    def rearrange(self, seat: int, chunks: Iterable[Chunk]) -> None:
        length = 0
        for chunk in chunks:
            self._context.move(seat, chunk.source, chunk.source + chunk.count, chunk.target)
            length = chunk.target + chunk.count
        self.cut(seat, length)

    def drop(self, seat: int) -> None:
        self._context.drop(seat)

    def length(self, seat: int) -> int:
        return self._context.length(seat)

    def cut(self, seat: int, length: int) -> None:
        have = self._context.length(seat)
        if have > length and not self._context.cut(seat, length):
            self._context.drop(seat)
            raise MemoryFault(f"a sequence of {have} tokens could not be cut to {length}")
        have = self._context.length(seat)
        if have != length:
            self._context.drop(seat)
            raise MemoryFault(f"a sequence holds {have} tokens, {length} were expected")


class UnifiedMemory(SplitMemory):
    """One pool of cells for all sequences (`kv_unified = true`); a shared prefix shares its cells."""

    compact = False

    def share(self, source: int, targets: Iterable[tuple[int, int]]) -> None:
        whole = self._context.length(source)
        for seat, length in targets:
            # a running state (recurrent memory) can only be copied whole, which is then also what is asked for
            start, end = (-1, -1) if length == whole else (0, length)
            self._context.copy(source, seat, start, end)
            self.cut(seat, length)

    def shift(self, seat: int, keep: int, discard: int) -> None:
        # cells that others share would move for them too, so the seat gets cells of its own
        state, length = self.rest(seat), self.length(seat)
        self.drop(seat)
        self.wake(seat, state, length)
        super().shift(seat, keep, discard)

    def move(self, source: int, target: int) -> None:
        self._context.copy(source, target)
        self._context.drop(source)
