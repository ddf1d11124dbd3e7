"""Measures ways of computing, on contexts made for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from typing import Protocol

from puna.engine.calibration import Costs, Way
from puna.errors import StartupError
from puna.llama import library
from puna.llama.batch import Batch
from puna.llama.context import Context, DecodeError
from puna.llama.state import State, StateFormatError, stretch

CROWD = 4
"""Sequences that write at the same time."""
PIECE = 64
"""Prompt tokens that are read at once: enough for the kernels that need many, and few enough to be quick."""
TASTE = 8
"""Tokens that tell about how long a piece will take."""
DEEP, SHALLOW = 1024, 128
"""Tokens that sequences hold already; the one that reads half as many, as on its way there."""
MARGIN = 96
UNCUT_LENGTH = 1024
"""Room of a sequence that cannot be cut back after each round, and so becomes longer and longer."""


CALM = 0.6
"""Share of the time that this thread must have had a core: on a busy machine times mean nothing."""


class MakeTrialContext(Protocol):
    """Makes a context for a way: so many sequences of so many tokens. Raises `StartupError` for want of memory."""

    def __call__(self, way: Way, n_sequences: int, length: int) -> Context: ...


class Disturbed(Exception):
    """Something else used the cores meanwhile."""


class Watch:
    """Takes the time of something that this thread computes without waiting."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.thread_time()

    def stop(self) -> float:
        """Seconds since the start. Raises `Disturbed` when this thread had no core for much of them."""
        wall, cpu = time.perf_counter() - self._wall, time.thread_time() - self._cpu
        if not library.has_accelerator() and cpu < CALM * wall:
            raise Disturbed(f"{cpu:.2f} of {wall:.2f} seconds")
        return wall


class Stage:
    """A context in which sequences of some length lie ready."""

    def __init__(self, context: Context, n_writers: int, length: int, *, can_cut: bool, n_vocab: int) -> None:
        """`context` has room for one sequence more, the reader."""
        self.context = context
        self._n = n_writers
        self._reader = n_writers
        self._length = length
        self._can_cut = can_cut
        self._n_vocab = n_vocab
        self._batch = Batch(PIECE + n_writers)
        self._ends = [0] * (n_writers + 1)
        """Tokens that each sequence holds."""

    def try_out(self) -> float:
        """Compute a few tokens and forget them; about the seconds that a round takes."""
        self._decode([(0, 2)])  # reads the weights, if need be from disk
        watch = Watch()
        self._decode([(0, TASTE)])
        seconds = watch.stop()
        self.context.drop(0)
        self._ends[0] = 0
        return seconds / TASTE * (PIECE + 1 + self._n)

    def fill(self, depth: int) -> None:
        """Let all sequences hold `depth` tokens where that can be made up, a few elsewhere.

        Raises `DecodeError` when the engine cannot compute this.
        """
        self._decode([(0, 2)])
        try:
            states = self._make_up(depth)
        except StateFormatError:
            self._can_cut, states = False, None
        for sequence in range(self._n + 1):
            if states is None:
                self._decode([(sequence, 1)])
                continue
            state, length = (states[1], depth // 2) if sequence == self._reader else (states[0], depth)
            self.context.drop(sequence)
            if not self.context.load(sequence, state, length):
                raise DecodeError("a made-up state was refused")
            self._ends[sequence] = length
        self._decode([(sequence, 1) for sequence in range(self._n)])  # the first time everything is slower

    def _make_up(self, depth: int) -> tuple[State, State] | None:
        """States of so many tokens and of half as many; None where memory cannot be cut."""
        shape = self.context.learn_shape(0) if self._can_cut else None
        if shape is None:
            self._can_cut = False
            return None
        seed = self.context.save(0)
        return stretch(seed, shape, depth), stretch(seed, shape, depth // 2)

    def run(self) -> tuple[float, float, float]:
        """Read a piece, write one token alone and one in every sequence: seconds for a token of each kind.

        Raises `DecodeError`, and `Disturbed` when the machine is busy.
        """
        before = list(self._ends)
        if max(before) + PIECE + 2 > self._length:
            for sequence in range(len(before)):
                self.context.drop(sequence)
            before = self._ends = [0] * len(before)
        watch, times = Watch(), [time.perf_counter()]
        for rows in ([(self._reader, PIECE)], [(0, 1)], [(sequence, 1) for sequence in range(self._n)]):
            self._decode(rows)
            times.append(time.perf_counter())
        watch.stop()
        if self._can_cut:
            for sequence, end in enumerate(before):
                self.context.cut(sequence, end)
            self._ends = before
        reading, alone, crowd = (end - begin for begin, end in pairwise(times))
        return reading / PIECE, alone, crowd / self._n

    def _decode(self, rows: list[tuple[int, int]]) -> None:
        self._batch.clear()
        for sequence, count in rows:
            begin = self._ends[sequence]
            tokens = [(7 * position + sequence) % self._n_vocab for position in range(begin, begin + count)]
            self._batch.add(tokens, begin, sequence, n_logits=1)
            self._ends[sequence] += count
        self.context.decode(self._batch)


class Trials:
    """Measures ways until its time is up. Close it, which frees the contexts."""

    def __init__(
        self,
        make: MakeTrialContext,
        *,
        n_vocab: int,
        n_sequences: int,
        can_cut: bool,
        seconds: float,
        warn: Callable[[str], None],
    ) -> None:
        """The time begins when the weights have been read once: that is loading still."""
        self._make = make
        self._n_vocab = n_vocab
        self._n = min(CROWD, n_sequences)
        self._can_cut = can_cut
        self._seconds = seconds
        self._end: float | None = None
        self._warn = warn
        self._round = 0.0
        """Seconds that a round is expected to take."""
        self._stages: dict[tuple[str, bool, bool], Stage] = {}

    def measure(self, way: Way) -> Costs | None:
        """Measure a way once; None when there is no time for it, no memory, the engine cannot do it, or the machine is busy."""
        try:
            stage = self._stages.pop(_key(way), None)
            if stage is not None:
                self._stages[_key(way)] = stage  # as the newest
            else:
                stage = self._prepare(way)
            if stage is None or not self._is_time_for(1):
                return None
            stage.context.set_threads(way.n_threads, way.n_threads_batch)
            reading, alone, crowd = stage.run()
        except Disturbed:
            self._end = 0.0
            return None
        except (StartupError, DecodeError) as error:
            self._warn(f"{way} cannot be measured: {error}")
            return None
        self._round = reading * PIECE + alone + crowd * self._n
        return Costs(alone=alone, crowd=crowd, reading=reading)

    def _is_time_for(self, rounds: float) -> bool:
        return self._end is None or time.perf_counter() + rounds * self._round <= self._end

    def close(self) -> None:
        for stage in self._stages.values():
            stage.context.close()
        self._stages.clear()

    def _prepare(self, way: Way) -> Stage | None:
        """A new stage, with one other at most beside it; None when there is no time to fill it and use it once."""
        if not self._is_time_for(2):
            return None
        while len(self._stages) > 1:
            self._stages.pop(next(iter(self._stages))).context.close()  # the one that was not used for longest
        depth = DEEP if way.deep else SHALLOW
        length = depth + MARGIN if self._can_cut else UNCUT_LENGTH
        stage = Stage(self._make(way, self._n + 1, length), self._n, length, can_cut=self._can_cut, n_vocab=self._n_vocab)
        self._stages[_key(way)] = stage  # closed with the others whatever happens
        if self._end is None:
            self._round = stage.try_out()
            self._end = time.perf_counter() + self._seconds
            if not self._is_time_for(2):
                return None
        stage.fill(depth)
        return stage


def _key(way: Way) -> tuple[str, bool, bool]:
    return way.layout, way.flash, way.deep
