"""Runs of tokens that a prompt and a stored one have in common, at other places than their beginning. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Chunk:
    """Stored tokens that move to where a prompt has the same ones."""

    source: int
    """Where it begins in what is stored."""
    target: int
    """Where it begins in the prompt, which is never later."""
    count: int


def find_chunks(stored: Sequence[int], prompt: Sequence[int], start: int, least: int) -> list[Chunk]:
    """Chunks of at least `least` tokens with which `prompt` goes on after its first `start` tokens, which are those of `stored`.

    Each begins in the prompt where the last one ended, so that together with the beginning they are a longer beginning.
    What was left out of the stored tokens is passed over; nothing is put in between. As llama.cpp's server does it.
    """
    chunks = []
    source = target = start
    while source < len(stored) and target < len(prompt):
        count = 0
        while source + count < len(stored) and target + count < len(prompt) and stored[source + count] == prompt[target + count]:
            count += 1
        if count >= max(1, least):
            chunks.append(Chunk(source, target, count))
            source += count
            target += count
        else:
            source += 1
    return chunks
