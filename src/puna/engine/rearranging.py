"""Moving cells of a resting prompt to where another prompt has the same tokens, for requests that allow it."""

from __future__ import annotations

from puna.engine.chunks import Chunk, find_chunks
from puna.engine.memory import Memory, MemoryFault
from puna.engine.sequence import MOVED, Sequence
from puna.engine.tiers import Found, HostTier
from puna.llama.state import StateFormatError

CANDIDATES = 4
"""How many resting prompts that begin like a new one are looked through."""


class Rearranger:
    """Looks for a resting prompt that has long runs of a new prompt's tokens, and moves its cells.

    What a moved cell holds was computed after other tokens than now stand before it. So this is for requests that ask for it
    (`n_cache_reuse`), and what comes of it rests in a namespace of its own.
    """

    def __init__(self, memory: Memory, host: HostTier) -> None:
        self._memory = memory
        self._host = host

    def wants(self, sequence: Sequence) -> bool:
        """Whether this is still to be tried for a sequence."""
        wish = sequence.generation
        return (
            wish.n_cache_reuse > 0
            and wish.cache_prompt
            and not (sequence.rearranged or sequence.n_dropped or wish.prompt_probs or wish.deterministic)
            and sequence.leader is None
            and not sequence.runs
        )

    def rearrange(self, sequence: Sequence, room: int) -> int:
        """Fill a sequence's seat with a longer beginning, if there is one; how many tokens it spares. Directly before a decode.

        `room` is how many tokens a seat has cells for. Raises `MemoryFault` with an empty seat when it goes wrong.
        """
        sequence.rearranged = True
        if not self._memory.can_shift:
            return 0
        found, chunks = self._best(sequence, room)
        gain = chunks[-1].target + chunks[-1].count - sequence.n_done if chunks else 0
        if found is None or gain < sequence.generation.n_cache_reuse:
            return 0
        before, sequence.n_done = sequence.n_done, 0
        self._memory.drop(sequence.seat)
        try:
            self._memory.wake(sequence.seat, self._host.load(found), found.length)
        except StateFormatError as error:
            raise MemoryFault(str(error)) from error
        self._memory.rearrange(sequence.seat, chunks)
        sequence.n_done = before + gain
        sequence.moved = True
        return gain

    def _best(self, sequence: Sequence, room: int) -> tuple[Found | None, list[Chunk]]:
        prompt = sequence.tokens[:-1]
        best: tuple[Found | None, list[Chunk]] = None, []
        reached = sequence.n_done
        exact = sequence.exact_key_at(len(prompt))
        for key in (exact, exact + MOVED):
            start = self._host.shared(prompt, key)
            for found in self._host.alike(prompt, key, CANDIDATES):
                stored = found.node.tokens()[:room]
                if min(stored) < 0:
                    continue  # it has a picture, whose vectors are no tokens
                chunks = find_chunks(stored, prompt, start, sequence.generation.n_cache_reuse)
                if chunks and chunks[-1].target + chunks[-1].count > reached:
                    reached = chunks[-1].target + chunks[-1].count
                    best = Found(len(stored), found.node, checkpoint=False), chunks
        return best
