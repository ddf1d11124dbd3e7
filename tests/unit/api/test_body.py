"""Bodies: what is JSON, how deep it may be, how large, and where an error lies."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from puna.api.body import LARGE, MAX_CONTAINERS, MAX_MEMBERS, MAX_VALUES, parse, parse_any, validate
from puna.api.nesting import PIECE, shape
from puna.errors import InvalidRequest
from tests.web import client

BAD = [
    b"",
    b"  \n",
    b"[]",
    b'"x"',
    b"5",
    b"null",
    b'{"prompt":',
    b'{"prompt":"x"}}',
    b'{"prompt":"x",}',
    b"{'a':1}",
    b'{"a":NaN}',
    b'{"a":Infinity}',
    b'{"a":1e999,"b":NaN}',
    b'{"a":-Infinity}',
    b'{"prompt":"\xe6\xbc"}',
    b'{"prompt":"\xc4\xe3\xba\xc3"}',
    b'{"prompt":"\xed\xa0\x80"}',
    b"\xff\xfe{\x00}\x00",
    b'{"prompt":"\\ud800"}',
    b'{"prompt":"\\udc00x"}',
    b'{"prompt":"\\ud800","a":1e999}',
    b'{"prompt":' + b"[" * 200 + b"]" * 200 + b"}",
    b'{"prompt":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"a":' * 150 + b"1" + b"}" * 150,
    b"[" * 500,
    b'{"a":' + b"9" * 5000 + b"}",
]


@pytest.mark.parametrize("raw", BAD, ids=lambda raw: repr(raw[:24]))
async def test_bad_bodies_are_400_in_json(raw: bytes) -> None:
    async with client() as http:
        for path in ("/completion", "/v1/chat/completions", "/v1/completions", "/tokenize"):
            reply = await http.post(path, content=raw)
            assert reply.status_code == 400
            assert reply.headers["content-type"] == "application/json"
            error = json.loads(reply.content.decode())["error"]
            assert error["type"] == "invalid_request_error" and error["message"] and error["code"] == 400


@pytest.mark.parametrize(
    "raw, value",
    [
        (b'{"a":1,"a":2}', {"a": 2}),
        (b'\xef\xbb\xbf{"a":1}', {"a": 1}),
        (b'{"a":"\\ud83d\\ude00"}', {"a": "😀"}),
        (b'{"a":1e999}', {"a": float("inf")}),
        (b'{"a":"' + b"[" * 500 + b'"}', {"a": "[" * 500}),
        (b'{"a":' + b"[" * 99 + b"]" * 99 + b"}", {"a": json.loads("[" * 99 + "]" * 99)}),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_good_bodies(raw: bytes, value: object) -> None:
    assert parse(raw) == value


VALUES = st.recursive(
    st.none() | st.integers() | st.text(alphabet='ab"\\[]{}'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='k"\\[{', max_size=3), inner, max_size=4),
    max_leaves=30,
)


def depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


def count(value: object) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(count, value.values()))
    return 1 + sum(map(count, value)) if isinstance(value, list) else 0


@given(VALUES)
def test_brackets_are_counted_outside_strings_only(value: object) -> None:
    assert shape(json.dumps(value).encode())[:2] == (depth(value), count(value))


def test_brackets_are_counted_across_pieces() -> None:
    filler = json.dumps("[" * (PIECE - 3))
    assert shape(f"[{filler},[{filler},[[]]]]".encode()) == (4, 4, 2, 0)


def test_many_brackets_side_by_side_are_not_deep_but_have_a_limit() -> None:
    assert len(parse(b'{"a":[' + b"[]," * (MAX_CONTAINERS - 3) + b"[]]}")["a"]) == MAX_CONTAINERS - 2
    with pytest.raises(InvalidRequest, match="lists and objects"):
        parse(b'{"a":[' + b"[]," * MAX_CONTAINERS + b"[]]}")


def test_values_and_members_have_a_limit_outside_strings() -> None:
    assert len(parse(b'{"a":[' + b"1," * (MAX_VALUES - 1) + b"1]}")["a"]) == MAX_VALUES
    with pytest.raises(InvalidRequest, match="values"):
        parse(b'{"a":[' + b"1," * (MAX_VALUES + 1) + b"1]}")
    with pytest.raises(InvalidRequest, match="members"):
        parse(b"{" + b'"a":1,' * (MAX_MEMBERS + 1) + b'"a":1}')
    text = ',":' * MAX_VALUES
    assert parse(json.dumps({"a": text}).encode()) == {"a": text}


async def test_a_large_body_is_read_like_a_small_one() -> None:
    raw = json.dumps({"a": "x" * LARGE}).encode()
    assert await parse_any(raw) == parse(raw)
    with pytest.raises(InvalidRequest, match="list"):
        await parse_any(raw, as_list=True)


async def test_bodies_over_the_limit_are_413_with_and_without_a_length() -> None:
    async def pieces() -> object:
        for _ in range(30):
            yield b'{"prompt":"' + b"a" * 100

    async with client(max_body=2000) as http:
        for content in (b'{"prompt":"' + b"a" * 2000 + b'"}', pieces()):
            reply = await http.post("/completion", content=content)  # type: ignore[arg-type]  # an async generator is fine
            assert reply.status_code == 413
            assert reply.json()["error"]["type"] == "invalid_request_error"
        assert (await http.post("/completion", content=b'{"prompt":"' + b"a" * 1900 + b'"}')).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
async def test_the_content_type_does_not_matter(kind: str) -> None:
    async with client() as http:
        reply = await http.post("/completion", content=b'{"prompt":"x"}', headers={"content-type": kind})
        assert reply.status_code == 200


class Inner(BaseModel):
    model_config = ConfigDict(strict=True)
    names: list[str] | int | None = None
    needed: str


class Outer(BaseModel):
    model_config = ConfigDict(strict=True)
    inner: list[Inner] | None = None


@pytest.mark.parametrize(
    "value, param",
    [
        ({"inner": 5}, "inner"),
        ({"inner": [5]}, "inner.0"),
        ({"inner": [{"names": 1}]}, "inner.0.needed"),
        ({"inner": [{"needed": "x"}, {"needed": 5}]}, "inner.1.needed"),
        ({"inner": [{"needed": "x", "names": ["a", 5]}]}, "inner.0.names.1"),
    ],
)
def test_errors_name_the_place_in_the_body(value: dict[str, object], param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        validate(Outer, value)
    assert caught.value.param == param
    assert caught.value.message.startswith(f"Field '{param}': ")
