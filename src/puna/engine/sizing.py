"""How many sequences of what length suit a model and a machine. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from puna.errors import StartupError

FIRST_N_CTX = 2048
"""Tokens of a sequence that the context has room for at first; it grows when one needs more."""

SHORT_N_CTX = 512
"""The first length where short sequences are computed in a way of their own: flash attention pays there on CPUs."""

MOST_SLOTS = 16
FEW_SEATS = 4
"""Seats that a context for longer sequences has at least."""

FIRST_SHARE = 0.1
"""Share of the free memory that cells may take at first, which decides how many slots there are."""

GROWN_SHARE = 0.4
"""Share of the free memory that cells may grow to."""

UNKNOWN_FREE = 4 * 1024**3
"""Bytes taken for free where the system does not say."""

CACHE_SHARE = 0.1
"""Share of the free memory that resting prompts may take."""

MOST_CACHE = 8 * 1024**3

WEIGHTS_SHARE = 0.25
"""Most of the free memory that weights may take which could as well stay in the file."""

TYPE_BYTES = {"f32": 4.0, "f16": 2.0, "bf16": 2.0, "q8_0": 34 / 32, "q5_1": 24 / 32, "q5_0": 22 / 32, "q4_1": 20 / 32}
SMALLEST_TYPE = 18 / 32


@dataclass(frozen=True, slots=True)
class Size:
    """A context's shape, now and as far as it may grow."""

    n_ctx: int
    """Most tokens of one sequence."""
    n_slots: int
    """Most sequences at once."""
    first: int
    """Tokens of a sequence that there is room for at first."""
    cell: int
    """Bytes a token takes."""
    grown: int
    """Bytes that cells may take after growing."""
    short: bool = False
    """Whether `first` is for short sequences alone, which are computed there in a way of their own."""
    fixed: bool = False
    """Whether there are as many seats at any length, because states do not fit a context with fewer."""

    def seats(self, length: int) -> int:
        """How many sequences of `length` tokens there is room for: never more than slots, never none."""
        if self.fixed or length <= self.first:
            return self.n_slots
        return max(1, min(self.n_slots, self.grown // (length * self.cell)))

    def seats_made(self, length: int, wanted: int) -> int:
        """How many of those seats to make while there are `wanted` requests: few, as clearing their cells takes time."""
        most = self.seats(length)
        if self.fixed or length <= self.first:
            return most
        made = FEW_SEATS
        while made < wanted:
            made *= 4
        return min(most, made)

    def least(self, *, reproducible: bool) -> int:
        """Tokens that a sequence needs room for however short it is: more where short ones are computed differently and
        this one must always be computed the same way."""
        return min(self.first + 1, self.n_ctx) if reproducible and self.short else 1

    def next_length(self, needed: int) -> int:
        """The length to grow to so that a sequence of `needed` tokens fits."""
        if needed <= self.first:
            return self.first
        length = max(self.first, FIRST_N_CTX)
        while length < needed:
            length *= 2
        return min(length, self.n_ctx)


def cell_bytes(metadata: Mapping[str, str], n_layer: int, n_embd: int, type_k: str, type_v: str) -> int:
    """Bytes that one token takes in the KV cells; an upper bound where layers differ."""
    arch = metadata.get("general.architecture", "")

    def number(key: str, default: int) -> int:
        text = metadata.get(f"{arch}.{key}", "")
        numbers = [int(part) for part in text.strip("[]").split(",") if part.strip().isdigit()]
        return max(numbers, default=default)

    n_head = number("attention.head_count", 1)
    n_head_kv = number("attention.head_count_kv", n_head)
    head = n_embd // max(1, n_head)
    key, value = number("attention.key_length", head), number("attention.value_length", head)
    k_bytes, v_bytes = (TYPE_BYTES.get(kind, SMALLEST_TYPE) for kind in (type_k, type_v))
    return max(1, int(n_layer * n_head_kv * (key * k_bytes + value * v_bytes)))


def choose_size(
    *, n_ctx: int, n_slots: int, n_ctx_train: int, cell: int, free: int, fixed: bool = False, short: bool = False
) -> Size:
    """Fill in what the user left open (0).

    `cell` is bytes a token, `free` the bytes of memory that are free. A sequence may become as long as the user says,
    else as long as the model was trained for, halved until it fits. There are as many slots as the user says, else as
    many as the first length leaves memory for; with `fixed`, as the greatest length does. With `short` the first
    context is only for short sequences.

    Raises `StartupError` for a length of which not even one sequence fits.
    """
    if n_ctx * cell > free:
        raise StartupError(
            f"a context of {n_ctx} tokens takes about {n_ctx * cell / 1e6:,.0f} MB and {free / 1e6:,.0f} MB are free; "
            "ask for less with -c, or for smaller cells with -ctk q8_0 -ctv q8_0"
        )
    grown = max(int(free * GROWN_SHARE), n_ctx * cell)
    limit = n_ctx or n_ctx_train or FIRST_N_CTX
    if not n_ctx:
        while limit > FIRST_N_CTX and limit * cell * max(1, n_slots) > grown:
            limit //= 2
    first = min(limit, FIRST_N_CTX)
    room, length = (grown, limit) if fixed else (int(free * FIRST_SHARE), first)
    slots = n_slots or max(1, min(MOST_SLOTS, room // (length * cell)))
    return Size(limit, slots, min(first, SHORT_N_CTX) if short else first, cell, grown, short, fixed)


def choose_cache(cache_ram: int, free: int) -> int:
    """Bytes for resting prompts: what the user said, or a share of the free memory for -1."""
    return cache_ram if cache_ram >= 0 else min(MOST_CACHE, int(free * CACHE_SHARE))


def choose_mmap(mmap: bool | None, *, n_bytes: int, free: int, large_pages: bool) -> bool:
    """Whether to map a model file of `n_bytes` rather than to read it: as the user said, else for want of a reason not to.

    In large pages weights are found faster, which decides how fast a single stream is. A mapped file has small ones.
    """
    return mmap if mmap is not None else not (large_pages and n_bytes <= WEIGHTS_SHARE * free)
