"""What a full context drops so that an answer can go on. Pure."""

from __future__ import annotations

LEAST_LEFT = 4
"""Tokens that a shift must be free to drop, however many the request wants to keep."""


def choose_shift(n_tokens: int, n_ctx: int, *, n_prompt: int, n_keep: int, n_discard: int, add_bos: bool) -> tuple[int, int]:
    """How many of a sequence's `n_tokens` stay at its beginning, and how many after those are dropped, at least one.

    `n_keep` is -1 for the whole prompt, `n_discard` 0 for half of what may go. A model's BOS is kept as well.
    """
    keep = n_prompt if n_keep < 0 else n_keep + add_bos
    keep = max(0, min(keep, n_ctx - LEAST_LEFT, n_tokens - 1))
    may_go = n_tokens - keep
    return keep, max(1, min(n_discard or may_go // 2, may_go))
