from __future__ import annotations

from itertools import combinations

import pytest

from puna.bench.response import BrokenResponse, EventParser, ResponseParser

BODY = b"data: one\n\ndata: two\r\n\r\n"
RESPONSES = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-A: b\r\n\r\n" % len(BODY) + BODY,
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n"
    b"5\r\ndata:\r\nd;x=1\r\n one\n\ndata: t\r\n6\r\nwo\r\n\r\n\r\n0\r\n\r\n",
    "trailer": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n18\r\n" + BODY + b"\r\n0\r\nX-T: 1\r\n\r\n",
    "close": b"HTTP/1.0 200\r\n\r\n" + BODY,
}


def read(pieces: list[bytes]) -> tuple[bytes, ResponseParser]:
    parser = ResponseParser()
    return b"".join(parser.feed(piece) for piece in pieces), parser


@pytest.mark.parametrize("kind", RESPONSES)
def test_every_split_gives_the_same_body(kind: str) -> None:
    whole = RESPONSES[kind]
    assert read([whole])[0] == BODY
    assert read([whole[i : i + 1] for i in range(len(whole))])[0] == BODY
    for one, two in combinations(range(len(whole) + 1), 2):
        body, parser = read([whole[:one], whole[one:two], whole[two:]])
        parser.finish()
        assert (body, parser.status, parser.done) == (BODY, 200, True)


@pytest.mark.parametrize("kind", ["length", "chunked", "trailer"])
def test_every_early_end_is_noticed(kind: str) -> None:
    whole = RESPONSES[kind]
    for end in range(len(whole)):
        _, parser = read([whole[:end]])
        assert not parser.done
        with pytest.raises(BrokenResponse, match="closed the connection"):
            parser.finish()


def test_an_empty_body_is_done_at_once() -> None:
    assert read([b"HTTP/1.1 204 No\r\nContent-Length: 0\r\n\r\n"])[1].done


@pytest.mark.parametrize(
    "content",
    [
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_response_is_refused(content: bytes) -> None:
    with pytest.raises(BrokenResponse, match="not "):
        read([content])


STREAM = 'data: {"a":1}\n\n: ping\n\nevent: x\r\ndata:two\r\ndata: ü\r\n\r\nid: 3\n\ndata: [DONE]\n\ndata: last'.encode()
EVENTS = ['{"a":1}', "two\nü", "[DONE]", "last"]


def test_events_at_every_split() -> None:
    for one, two in combinations(range(len(STREAM) + 1), 2):
        parser = EventParser()
        found = [event for piece in (STREAM[:one], STREAM[one:two], STREAM[two:]) for event in parser.feed(piece)]
        assert found + parser.finish() == EVENTS


def test_nothing_is_left_after_a_whole_event() -> None:
    parser = EventParser()
    assert parser.feed(b"data: x\n\n") == ["x"]
    assert parser.finish() == []
