"""Bytes to text: equal to decoding the whole input at once, and cut before the first stop string, at every split."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puna.client.text import StopMatcher, TextStream

# One of each kind of byte: text, the borders of continuation bytes, leads of 2, 3 and 4, and bytes that are never valid.
BYTES = (
    0x00,
    0x41,
    0x7F,
    0x80,
    0x8F,
    0x90,
    0x9F,
    0xA0,
    0xBF,
    0xC0,
    0xC2,
    0xDF,
    0xE0,
    0xE1,
    0xED,
    0xEF,
    0xF0,
    0xF1,
    0xF4,
    0xF5,
    0xFF,
)
HARD = b"\xe1\x80\xe2\xf0\x91\x92\xf1\xbfA"


def run(pieces: Sequence[bytes], stops: Sequence[str] = ()) -> tuple[str, str | None]:
    """All the text of these pieces, and the stop string."""
    stream = TextStream(stops)
    text = "".join(map(stream.feed, pieces))
    return text + stream.finish(), stream.stopped


def splits(data: bytes) -> Iterator[list[bytes]]:
    """The input whole, cut once and twice everywhere, and byte by byte."""
    for a, b in itertools.combinations_with_replacement(range(len(data) + 1), 2):
        yield [data[:a], data[a:b], data[b:]]
    yield [data[at : at + 1] for at in range(len(data))]


def oracle(text: str, stops: Sequence[str]) -> tuple[str, str | None]:
    """The rule, said plainly: the first character that completes a stop string, and the longest that it completes."""
    for end in range(1, len(text) + 1):
        found = [stop for stop in stops if stop and text[:end].endswith(stop)]
        if found:
            word = max(found, key=len)
            return text[: end - len(word)], word
    return text, None


@pytest.mark.parametrize("length", [1, 2, 3])
def test_all_short_inputs_of_every_kind_of_byte(length: int) -> None:
    for values in itertools.product(BYTES, repeat=length):
        data = bytes(values)
        want = data.decode("utf-8", "replace")
        assert run([data]) == (want, None)
        assert run([data[at : at + 1] for at in range(length)]) == (want, None)


def test_all_inputs_of_two_bytes() -> None:
    for value in range(65536):
        data = value.to_bytes(2, "big")
        assert run([data[:1], data[1:]])[0] == data.decode("utf-8", "replace")


@pytest.mark.parametrize(
    "data", [HARD, "a😀é漢👩‍👩‍👧b".encode(), "é".encode()[:1], "ab😀".encode()[:-1], HARD + "😀".encode()[:3]]
)
def test_every_split(data: bytes) -> None:
    for pieces in splits(data):
        assert run(pieces)[0] == data.decode("utf-8", "replace")


@given(st.lists(st.binary(max_size=5)))
def test_any_pieces(pieces: list[bytes]) -> None:
    assert run(pieces)[0] == b"".join(pieces).decode("utf-8", "replace")


def test_a_character_is_never_shown_in_part() -> None:
    stream = TextStream()
    assert [stream.feed(bytes([byte])) for byte in "é😀".encode()] == ["", "é", "", "", "", "😀"]


FORCED = "Alice! go TRE 😀 end 👩‍👩‍👧."
STOPS = [
    [],
    ["!"],
    ["Alice:"],
    ["TRE\nAAAA"],
    ["go TRE"],
    ["😀"],
    ["👩‍👧"],
    ["A"],
    [FORCED],
    [FORCED + "x"],
    ["."],
    ["nothing", "go", "TRE"],
    ["end", "e"],
    ["go T", "o", "go TRE"],
    ["", "TRE", ""],
]


@pytest.mark.parametrize("stops", STOPS, ids=repr)
def test_stop_strings_at_every_split(stops: list[str]) -> None:
    data = FORCED.encode()
    want = oracle(FORCED, stops)
    if len(stops) == 1:
        assert want[0] == FORCED.split(stops[0])[0]
    for at in range(len(data) + 1):
        assert run([data[:at], data[at:]], stops) == want
    assert run([data[at : at + 1] for at in range(len(data))], stops) == want


@given(st.text("ab", max_size=20), st.lists(st.text("ab", max_size=4), max_size=4), st.integers(1, 20))
def test_stop_strings_that_overlap_themselves_and_each_other(text: str, stops: list[str], size: int) -> None:
    pieces = [text[at : at + size].encode() for at in range(0, len(text), size)]
    assert run(pieces, stops) == oracle(text, stops)


@given(st.lists(st.text("ab", max_size=3)), st.lists(st.text("ab", min_size=1, max_size=4), max_size=3))
def test_nothing_is_held_longer_than_it_may_begin_a_stop_string(pieces: list[str], stops: list[str]) -> None:
    matcher = StopMatcher(stops)
    shown = ""
    for at, piece in enumerate(pieces):
        shown += matcher.feed(piece)
        if matcher.stopped is not None:
            return
        seen = "".join(pieces[: at + 1])
        held = max((n for stop in stops for n in range(len(stop)) if seen.endswith(stop[:n])), default=0)
        assert shown == seen[: len(seen) - held]


def test_of_those_that_end_together_the_longest_wins() -> None:
    assert run([b"xyabcd"], ["bc", "abc", "c"]) == ("xy", "abc")


def test_the_one_that_ends_first_wins() -> None:
    assert run([b"xyabcd"], ["abcd", "bc"]) == ("xya", "bc")


def test_a_failed_match_is_released_once() -> None:
    stream = TextStream(["Alice:"])
    assert [stream.feed(piece) for piece in (b"Al", b"ice", b"!", b"x")] == ["", "", "Alice!", "x"]
    assert stream.finish() == ""


def test_held_text_is_released_at_the_end_once() -> None:
    stream = TextStream(["TRE\nAAAA"])
    assert stream.feed(b"go TRE") == "go "
    assert stream.finish() == "TRE"
    assert stream.finish() == ""
    assert stream.stopped is None


def test_nothing_follows_a_stop_string() -> None:
    stream = TextStream(["b"])
    assert [stream.feed(piece) for piece in (b"ab", b"cd", b"b")] == ["a", "", ""]
    assert stream.finish() == ""
    assert stream.stopped == "b"


def test_a_replaced_tail_can_complete_a_stop_string() -> None:
    assert run([b"ab\xf0\x9f"], ["b�"]) == ("a", "b�")


def test_time_is_linear() -> None:
    def seconds(n: int) -> float:
        stream = TextStream(["ab" * 500 + "c", "x"])
        began = time.perf_counter()
        for _ in range(n):
            stream.feed(b"abab")
        return time.perf_counter() - began

    small = min(seconds(2_000) for _ in range(3))
    large = min(seconds(20_000) for _ in range(3))
    assert large < 40 * small
