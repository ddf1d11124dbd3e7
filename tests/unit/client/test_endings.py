"""Answers that end because of a line: one that is indented too little, or one that ends after all the time there was."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puna.client.assembly import Assembly
from puna.client.text import IndentFilter, TextStream
from puna.ipc.frames import Output
from puna.types import Chunk, Generation, Timings

PIECES = {0: b"if x:", 1: b"\n", 2: b"    a", 3: b"\n  ", 4: b"b", 5: b"\n\n", 6: b"\n\t\t\t\tc", 7: "\n    é".encode()}


def oracle(text: str, n_indent: int) -> str:
    """The rule, said plainly: cut before the first character of a line with too few blanks, the first line apart."""
    for match in re.finditer(r"\n[ \t]*", text):
        if len(match.group()) - 1 < n_indent and match.end() < len(text):
            return text[: match.end()]
    return text


@pytest.mark.parametrize(
    "text, kept",
    [
        ("a", "a"),
        ("  a\nb", "  a\n"),
        ("a\n    b\n    c\n  d", "a\n    b\n    c\n  "),
        ("a\n     b\n", "a\n     b\n"),
        ("a\n\t\t\t\tb\n   ", "a\n\t\t\t\tb\n   "),
        ("a\n\n    b", "a\n"),
        ("a\n    \n    b", "a\n    \n    b"),
        ("\n", "\n"),
        ("a\r\n    b\r\nc", "a\r\n    b\r\n"),
    ],
)
def test_a_line_that_is_indented_too_little_is_cut_at_every_split(text: str, kept: str) -> None:
    assert oracle(text, 4) == kept
    for a, b in itertools.combinations_with_replacement(range(len(text) + 1), 2):
        one = IndentFilter(4)
        assert one.feed(text[:a]) + one.feed(text[a:b]) + one.feed(text[b:]) == kept
        assert one.cut == (kept != text)
        assert not one.cut or one.feed("more") == ""


@given(st.text("a \t\n", max_size=40), st.integers(0, 3), st.data())
def test_any_text_and_indent(text: str, n_indent: int, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    one = IndentFilter(n_indent)
    got = "".join(one.feed(text[a:b]) for a, b in itertools.pairwise([0, *cuts, len(text)]))
    assert got == (oracle(text, n_indent) if n_indent else text)


@pytest.mark.parametrize(
    "text, stop, kept, word",
    [
        ("a\n  b END", "END", "a\n  b ", "END"),
        ("a\nb END", "END", "a\n", None),
        ("a\nb", "\nb", "a", "\nb"),
        ("a\n  b\nEN", "END", "a\n  b\n", None),
    ],
)
def test_stop_strings_and_indents_meet(text: str, stop: str, kept: str, word: str | None) -> None:
    for cut in range(len(text) + 1):
        stream = TextStream([stop], 2)
        got = stream.feed(text[:cut].encode()) + stream.feed(text[cut:].encode()) + stream.finish()
        assert got == kept
        assert stream.outdented == (word is None)
        assert word is None or stream.stopped == word


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def assembly(clock: Clock | None = None, **fields: object) -> Assembly:
    generation = Generation(prompt=(9,), **fields)  # type: ignore[arg-type]  # passed on
    return Assembly(generation, PIECES.__getitem__, clock=clock or Clock())


def output(*tokens: int, **fields: object) -> Output:
    return Output(id=0, tokens=tokens, **fields)  # type: ignore[arg-type]  # passed on


def test_an_indent_ends_an_answer_as_a_limit_and_counts_the_token_that_broke_it() -> None:
    one = assembly(n_indent=4)
    chunks = [*one.feed(output(0, 1)), *one.feed(output(2, 3, 4, 4, end="eos", timings=Timings(predicted_n=6)))]
    assert "".join(chunk.text for chunk in chunks) == "if x:\n    a\n  "
    last = chunks[-1]
    assert (last.stop_type, last.stopping_word, one.ended, one.stopped) == ("limit", "", True, True)
    assert one.produced == [0, 1, 2, 3, 4]
    assert last.timings is not None and last.timings.predicted_n == 5


def test_deep_lines_go_on() -> None:
    one = assembly(n_indent=4)
    assert [chunk.text for token in (0, 6, 7) for chunk in one.feed(output(token))] == ["if x:", "\n\t\t\t\tc", "\n    é"]
    assert not one.ended


def timed(*steps: tuple[float, tuple[int, ...]], **fields: object) -> list[Chunk]:
    """The chunks of outputs that come at these seconds."""
    clock = Clock()
    one = assembly(clock, t_max_predict_ms=100, **fields)
    chunks: list[Chunk] = []
    for at, tokens in steps:
        clock.now = at
        if not one.ended:
            chunks += one.feed(output(*tokens))
    return chunks


def test_after_the_time_the_next_line_end_is_the_end() -> None:
    chunks = timed((5.0, (0,)), (5.05, (1,)), (5.2, (2,)), (5.3, (3, 4)), (5.4, (4,)))
    assert "".join(chunk.text for chunk in chunks) == "if x:\n    a\n  "
    assert [chunk.stop_type for chunk in chunks] == ["none", "none", "none", "limit"]
    assert chunks[-1].tokens == (3,)


def test_without_a_line_end_or_within_the_time_an_answer_goes_on() -> None:
    assert {chunk.stop_type for chunk in timed((0.0, (0,)), (9.0, (4, 4)), (10.0, (2,)))} == {"none"}
    assert {chunk.stop_type for chunk in timed((0.0, (0,)), (0.09, (1, 2, 1, 2)), (0.1, (1,)))} == {"none"}


def test_a_line_end_that_may_begin_a_stop_string_counts_when_it_is_released() -> None:
    chunks = timed((0.0, (0,)), (1.0, (1,)), (1.1, (4,)), (1.2, (4,)), stop=("\nX",))
    assert "".join(chunk.text for chunk in chunks) == "if x:\nb"
    assert chunks[-1].stop_type == "limit"


def test_a_stop_string_comes_before_the_time() -> None:
    chunks = timed((0.0, (0,)), (1.0, (7,)), stop=("é",))
    assert (chunks[-1].text, chunks[-1].stop_type, chunks[-1].stopping_word) == ("\n    ", "word", "é")
