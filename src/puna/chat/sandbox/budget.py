"""What one render may cost: processor time, memory and output.

Nothing in Python can stop a running C call, and limits on the process (signals, `setrlimit`) do not fit a server that
renders on any thread. So nothing big may begin: every operation of a template pays in advance for what it can produce,
from one allowance that is never paid back. What is alive at any moment is then below the allowance, and no single
operation can run long, because its operands are small. Loops, calls and operators look at the clock in between.

Memory is not all: a structure that holds the same list twice, again and again, is small in memory and endless when it
is printed or compared. Containers therefore have a weight, their size when written out, and the weight is bounded too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import ItemsView, Iterable, Iterator, KeysView, ValuesView
from contextvars import ContextVar, Token
from typing import Any

from jinja2.exceptions import TemplateRuntimeError

BASE_BYTES = 20 << 20
"""What a render may allocate in all, beside its share for the size of its input.

Joining narrow text with one wide character makes all of it wide, so the true peak can be four times this.
"""
BYTES_PER_INPUT_BYTE = 32
BASE_WEIGHT = 8 << 20
WEIGHT_PER_INPUT_BYTE = 4
BASE_OUTPUT = 4 << 20
OUTPUT_PER_INPUT_BYTE = 4
SECONDS = 1.5
TICKS_BETWEEN_LOOKS = 32
BIG = 1 << 16
"""Operations on more bytes than this look at the clock."""
MAX_INT = 1 << 64
"""Larger integers are refused: they cost memory, and they make hash collisions that keep a dict busy for ever."""

_CONTAINERS = (list, tuple, dict, set, frozenset, KeysView, ValuesView, ItemsView)
_ITEM = 16
_CONTAINER = 64


class TemplateLimit(TemplateRuntimeError):
    """The template asked for more time, memory or output than a render may have."""


class Budget:
    """The allowance of one render. `SECONDS` count this thread's processor time, so a busy machine refuses nothing more."""

    def __init__(self, inputs: object = None, *, seconds: float = SECONDS) -> None:
        """`inputs` is everything the template is given; larger inputs make a larger allowance."""
        self._weights: dict[int, tuple[object, int]] = {}
        self._n_ticks = 0
        self._end = time.thread_time() + seconds
        self._bytes_left: float = float("inf")
        self._max_weight: float = float("inf")
        size = self.weigh(inputs)
        self._bytes_left = BASE_BYTES + BYTES_PER_INPUT_BYTE * size
        self._max_weight = BASE_WEIGHT + WEIGHT_PER_INPUT_BYTE * size
        self._output_left = BASE_OUTPUT + OUTPUT_PER_INPUT_BYTE * size

    def look(self) -> None:
        """Raise `TemplateLimit` when the time is over."""
        if time.thread_time() > self._end:
            raise TemplateLimit("the chat template takes too long")

    def tick(self) -> None:
        """Count one small step."""
        self._n_ticks += 1
        if not self._n_ticks % TICKS_BETWEEN_LOOKS:
            self.look()

    def spend(self, n_bytes: int) -> None:
        """Pay for `n_bytes` about to be allocated (or just allocated, where that was sure to be little)."""
        self._bytes_left -= n_bytes
        if self._bytes_left < 0:
            raise TemplateLimit("the chat template uses too much memory")
        if n_bytes > BIG:
            self.look()

    def emit(self, text: str) -> str:
        """Count a piece of the final output."""
        self._output_left -= sys.getsizeof(text)
        if self._output_left < 0:
            raise TemplateLimit("the chat template produces too much text")
        self.tick()
        return text

    def weigh(self, value: object) -> int:
        """Bytes of `value` when written out, nested values included; raises `TemplateLimit` for one that is too heavy.

        Weighed containers are remembered and kept alive: in the sandbox they cannot change.
        """
        if isinstance(value, str):
            return sys.getsizeof(value)
        if not isinstance(value, _CONTAINERS):
            return _CONTAINER
        known = self._weights.get(id(value))
        if known is not None:
            return known[1]
        self.spend(2 * _CONTAINER + _ITEM * len(value))
        total = _CONTAINER
        items: Iterable[Any] = value
        if isinstance(value, dict):
            items = [*value, *value.values()]
        for item in items:
            total += _ITEM + self.weigh(item)
            self.bear(total)
        self._weights[id(value)] = (value, total)
        return total

    def bear(self, weight: int) -> None:
        """Raise `TemplateLimit` when a value of this weight is more than one may have."""
        if weight > self._max_weight:
            raise TemplateLimit("the chat template builds too large a value")

    def text(self, value: object) -> str:
        """`str(value)`, paid for."""
        if not isinstance(value, str):
            self.weigh(value)
            value = str(value)
        self.spend(sys.getsizeof(value))
        return value

    def admit(self, value: Any) -> Any:
        """Pay for the result of an operation and return it; markup strings become plain ones, large integers are refused."""
        if isinstance(value, str):
            self.spend(sys.getsizeof(value))
            return value if type(value) is str else str.__str__(value)
        if isinstance(value, _CONTAINERS):
            self.weigh(value)
        elif isinstance(value, int) and not -MAX_INT < value < MAX_INT:
            raise TemplateLimit("the chat template uses too large a number")
        return value

    def drip(self, items: Iterable[Any]) -> Iterator[Any]:
        """Iterate over `items`, paying for each."""
        for item in items:
            self.tick()
            self.spend(_ITEM)
            yield item


_active: ContextVar[Budget] = ContextVar("puna_template_budget")


def activate(budget: Budget) -> Token[Budget]:
    """Make `budget` the one that operations of the running template pay from; undo with `deactivate`."""
    return _active.set(budget)


def deactivate(token: Token[Budget]) -> None:
    """Undo `activate`."""
    _active.reset(token)


def active() -> Budget:
    """The budget of the render that runs here."""
    return _active.get()
