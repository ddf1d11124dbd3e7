"""Where in a prompt a checkpoint is worth its memory, for models whose memory cannot be cut. Pure."""

from __future__ import annotations

BEFORE_END = 8
"""Tokens before a prompt's end that the last checkpoint lies: what the same prompt, or one with another opening of the answer,
has to read again. Openings that the next turn's prompt does not repeat, such as an empty thought, are 4 to 6 tokens."""

EVERY = 2048
"""Tokens between checkpoints in a long prompt, of which a later one may change any part."""

APART = 256
"""Least tokens between those and the others."""

LEAST_GAIN = 16
"""Tokens that a checkpoint where prompts part must spare over what there is already."""


def choose_checkpoints(n_prompt: int, *, n_known: int, n_shared: int) -> list[int]:
    """Lengths of a prompt's beginning, in ascending order, at which reading it pauses for a checkpoint.

    Of the prompt's `n_prompt` tokens `n_known` need not be read; `n_shared` have been seen before, and may well be the
    beginning of others to come.
    """
    chosen = []
    if n_known < n_prompt - BEFORE_END:
        chosen.append(n_prompt - BEFORE_END)
    if n_known + LEAST_GAIN <= n_shared < n_prompt - BEFORE_END:
        chosen.append(n_shared)
    for length in range(EVERY, n_prompt, EVERY):
        if length >= n_known + APART and all(abs(length - other) >= APART for other in chosen):
            chosen.append(length)
    return sorted(chosen)
