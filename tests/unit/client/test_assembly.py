"""Outputs to chunks: every token in exactly one chunk, whatever the steps were, and an end that tells the truth."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from puna.client.assembly import Assembly
from puna.errors import InvalidRequest, PunaError, ServerFault
from puna.ipc.frames import Output
from puna.types import Chunk, Generation, Progress, Timings, TokenProb

TEXT = "Alice! go 😀 TRE"
PIECES = [bytes([byte]) for byte in TEXT.encode()]
"""The piece of token i is the i-th byte."""


class Clock:
    """A clock that a test sets, in seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def assembly(
    *, stop: Sequence[str] = (), max_tokens: int = -1, every_token: bool = False, clock: Clock | None = None
) -> Assembly:
    generation = Generation(prompt=(7, 8, 9), stop=tuple(stop), max_tokens=max_tokens)
    return Assembly(generation, PIECES.__getitem__, every_token=every_token, clock=clock or Clock())


def output(*tokens: int, **fields: object) -> Output:
    """An output with a probability for each token."""
    probs = tuple(TokenProb(token, -float(token)) for token in tokens)
    return Output(id=0, tokens=tokens, probs=probs, **fields)  # type: ignore[arg-type]  # passed on as they are


def check_whole(chunks: Sequence[Chunk], n: int) -> None:
    """Tokens and probabilities 0 to n - 1 are there once, in order, side by side."""
    assert [token for chunk in chunks for token in chunk.tokens] == list(range(n))
    assert [prob.id for chunk in chunks for prob in chunk.probs] == list(range(n))
    assert all(len(chunk.tokens) == len(chunk.probs) for chunk in chunks)


@pytest.mark.parametrize("every_token", [False, True])
@pytest.mark.parametrize("stop", [(), ("!",), ("Alice:",), ("TRE\n",), ("go 😀",), ("😀", "i")])
def test_any_grouping_of_tokens_into_steps(stop: tuple[str, ...], every_token: bool) -> None:
    n = len(PIECES)
    seen = set()
    for a, b in itertools.combinations(range(n + 1), 2):
        one = assembly(stop=stop, every_token=every_token)
        chunks: list[Chunk] = []
        for part in (range(a), range(a, b), range(b, n)):
            if not one.ended:
                chunks += one.feed(output(*part, end="limit" if part.stop == n else "none"))
        last = chunks[-1]
        text = "".join(chunk.text for chunk in chunks)
        cut = min((TEXT.index(word) for word in stop if word in TEXT), default=len(TEXT))
        assert text == TEXT[:cut]
        assert one.ended
        assert last.stop_type == ("word" if cut < len(TEXT) else "limit")
        assert all(chunk.stop_type == "none" for chunk in chunks[:-1])
        assert last.timings is not None
        check_whole(chunks, len(one.produced))
        seen.add((len(one.produced), last.stopping_word))
    # How many tokens count does not depend on the grouping either.
    assert len(seen) == 1


def test_a_stop_string_counts_up_to_the_token_that_completes_it() -> None:
    one = assembly(stop=["ice"])
    (chunk,) = one.feed(output(*range(8), end="eos", timings=Timings(prompt_n=3, predicted_n=8)))
    assert (chunk.text, chunk.stop_type, chunk.stopping_word) == ("Al", "word", "ice")
    assert chunk.tokens == (0, 1, 2, 3, 4)
    assert chunk.timings is not None
    assert (chunk.timings.prompt_n, chunk.timings.predicted_n) == (3, 5)


def test_held_tokens_join_the_text_they_belong_to() -> None:
    one = assembly()
    start = TEXT.index("😀")
    one.feed(output(*range(start)))
    assert [one.feed(output(start + at)) for at in range(3)] == [[], [], []]
    (chunk,) = one.feed(output(start + 3))
    assert chunk.text == "😀"
    assert chunk.tokens == tuple(range(start, start + 4))


def test_every_token_is_told_at_once_when_asked_for() -> None:
    one = assembly(stop=["Alice:"], every_token=True)
    chunks = [chunk for token in range(3) for chunk in one.feed(output(token))]
    assert [(chunk.text, chunk.tokens) for chunk in chunks] == [("", (0,)), ("", (1,)), ("", (2,))]
    assert one.feed(Output(id=0)) == []


def test_the_end_without_a_token_releases_what_was_held() -> None:
    one = assembly(stop=["Alice:"])
    assert one.feed(output(0, 1)) == []
    (chunk,) = one.feed(Output(id=0, end="eos"))
    assert (chunk.text, chunk.tokens, chunk.stop_type) == ("Al", (0, 1), "eos")
    check_whole([chunk], 2)


def test_timings_pass_through() -> None:
    one = assembly()
    first = Timings(cache_n=1, prompt_n=2, prompt_ms=3.0, predicted_n=1, queue_ms=5.0)
    (chunk,) = one.feed(output(0, timings=first))
    assert chunk.timings == first
    last = Timings(cache_n=1, prompt_n=2, prompt_ms=3.0, predicted_n=2, predicted_ms=9.0, queue_ms=5.0)
    (chunk,) = one.feed(output(1, end="limit", timings=last))
    assert chunk.timings == last


def test_timings_run_on_between_and_across_workers() -> None:
    clock = Clock()
    one = assembly(clock=clock)
    one.feed(output(0, timings=Timings(cache_n=1, prompt_n=2, prompt_ms=3.0, predicted_n=1, queue_ms=5.0)))
    clock.now = 2.0
    (chunk,) = one.feed(output(1))
    want = Timings(cache_n=1, prompt_n=2, prompt_ms=3.0, queue_ms=5.0, predicted_n=2, predicted_ms=2000.0)
    assert chunk.timings == want
    assert one.submit(4).produced == (0, 1)
    clock.now = 3.0
    (chunk,) = one.feed(output(2, end="limit", timings=Timings(prompt_n=5, predicted_n=1, predicted_ms=1.0)))
    assert chunk.timings == Timings(cache_n=1, prompt_n=2, prompt_ms=3.0, queue_ms=5.0, predicted_n=3, predicted_ms=3000.0)


def test_progress_comes_alone_and_first() -> None:
    one = assembly()
    half = Progress(3, 0, 2, 1.0)
    assert one.feed(Output(id=0, progress=half, slot=2)) == [Chunk(progress=half, slot=2)]
    whole = Progress(3, 0, 3, 2.0)
    chunks = one.feed(output(0, progress=whole))
    assert [(chunk.progress, chunk.text, chunk.tokens, chunk.slot) for chunk in chunks] == [
        (whole, "", (), 2),
        (None, "A", (0,), 2),
    ]


def test_progress_never_goes_back_and_ends_with_the_first_token() -> None:
    one = assembly()
    told = [Progress(3, 0, n, 1.0) for n in (1, 2, 1, 2, 3, 3)]
    assert [chunk.progress for progress in told for chunk in one.feed(Output(id=0, progress=progress))] == [
        told[0],
        told[1],
        told[4],
    ]
    one.feed(output(0))
    assert one.feed(Output(id=0, progress=Progress(4, 0, 4, 1.0))) == []


@pytest.mark.parametrize("size", [1, 2, 5])
def test_prompt_probabilities_come_once_whatever_dies(size: int) -> None:
    scores = tuple(TokenProb(id, -1.0) for id in range(5))
    for seen in range(6):
        one = Assembly(Generation(prompt=(7, 8, 9, 10), prompt_probs=True), PIECES.__getitem__)
        chunks: list[Chunk] = []
        for limit in (seen, 5):
            one.submit(0)
            for at in range(0, limit, size):
                chunks += one.feed(Output(id=0, prompt_probs=scores[at : min(limit, at + size)]))
        assert tuple(prob for chunk in chunks for prob in chunk.prompt_probs) == scores[:3]
        assert all(chunk.prompt_probs for chunk in chunks)


@pytest.mark.parametrize(("kind", "error"), [("invalid", InvalidRequest), ("fault", ServerFault)])
def test_an_error_comes_after_all_that_was_produced(kind: str, error: type[PunaError]) -> None:
    one = assembly(stop=["Alice:"])
    one.feed(output(0, 1))
    chunks = one.feed(output(2, end="error", error="no such rule", error_kind=kind))
    assert [(chunk.text, chunk.stop_type) for chunk in chunks] == [("Ali", "none")]
    check_whole(chunks, 3)
    assert one.ended
    assert type(one.error) is error
    assert str(one.error) == "no such rule"
    assert one.error.status == (400 if kind == "invalid" else 500)


def test_reading_only_ends_with_one_empty_chunk() -> None:
    one = assembly(max_tokens=0)
    assert one.fits(3)
    chunk = Timings(prompt_n=3)
    assert one.feed(Output(id=0, end="limit", timings=chunk)) == [Chunk(stop_type="limit", timings=chunk)]


def test_full_after_the_last_token_that_it_may_have() -> None:
    one = assembly(max_tokens=2)
    one.feed(output(0, timings=Timings(prompt_n=3, predicted_n=1)))
    assert one.fits(100)
    one.feed(output(1))
    assert not one.fits(100)
    assert one.length == 5
    last = one.limit()
    assert last.stop_type == "limit"
    assert last.timings is not None
    assert (last.timings.prompt_n, last.timings.predicted_n) == (3, 2)
    assert one.ended


@pytest.mark.parametrize("shift", [False, True])
def test_full_when_the_context_is_unless_it_shifts(shift: bool) -> None:
    one = Assembly(Generation(prompt=(7, 8, 9), context_shift=shift), PIECES.__getitem__)
    one.feed(output(0, 1, truncated=shift))
    assert one.fits(5)
    assert one.fits(4) is shift
    assert one.feed(Output(id=0, end="limit"))[-1].truncated is shift


def test_submit_carries_everything() -> None:
    generation = Generation(prompt=(1, 2), max_tokens=9, cache_prompt=False, id_slot=1, want_progress=True)
    frame = Assembly(generation, PIECES.__getitem__).submit(12)
    assert (frame.id, frame.generation, frame.produced) == (12, generation, ())


def test_a_new_worker_is_told_that_thinking_was_ended() -> None:
    one = assembly()
    assert not one.submit(1).end_thinking
    one.end_thinking = True
    assert one.submit(1).end_thinking


def test_drafts_are_counted_over_stop_strings_and_workers() -> None:
    one = assembly(stop=["!"])
    one.feed(output(0, timings=Timings(prompt_n=3, predicted_n=1)))
    one.feed(output(1, 2, drafted=4, draft_accepted=1))
    one.submit(1)
    (last,) = one.feed(output(3, 4, 5, 6, drafted=3, draft_accepted=3))
    assert last.stop_type == "word"
    assert last.timings is not None
    assert (last.timings.draft_n, last.timings.draft_n_accepted) == (7, 4)
