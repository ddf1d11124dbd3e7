"""Event streams: their lines, chunk shapes, finish reasons and usage."""

from __future__ import annotations

import threading
from typing import Any

import httpx
import pytest
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests.e2e.dialects import CHAT, COMPLETIONS, DIALECTS, NATIVE, Dialect, forced
from tests.e2e.server import Server
from tests.e2e.sse import DONE

ENDINGS = ("word", "limit", "eos")


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
@pytest.mark.parametrize("fields", [{"prompt": "word " * 4000}, {"temperature": "hot"}, {"n": 0}], ids=["long", "type", "range"])
def test_errors_before_the_first_token_are_plain_replies(tiny_server: Server, dialect: Dialect, fields: dict[str, Any]) -> None:
    extra = dict(fields)
    body = dialect.body(extra.pop("prompt", "x"), stream=True, **extra)
    reply = tiny_server.post(dialect.path, body)
    assert reply.status_code == 400
    assert reply.headers["content-type"].startswith("application/json")
    assert reply.json()["error"]["message"]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
def test_streams_consist_of_event_stream_lines_and_compact_json(tiny_server: Server, dialect: Dialect) -> None:
    reply = tiny_server.post(dialect.path, dialect.body("x", stream=True, limit=4))
    assert reply.headers["content-type"].startswith("text/event-stream")
    lines = [line for line in reply.text.split("\n") if line]
    assert lines and all(line.startswith(("data: ", "event: ", "id: ", ":")) for line in lines)
    assert reply.text.endswith("\n\n")
    assert all('": ' not in line and '", "' not in line for line in lines if line.startswith("data: {"))


def test_chat_chunks_have_the_openai_shape(tiny_server: Server) -> None:
    for n in (1, 2):
        frames = tiny_server.frames(CHAT.path, CHAT.body("x", n=n, max_tokens=4, ignore_eos=True))
        assert frames.pop() is DONE
        for frame in frames:
            ChatCompletionChunk.model_validate(frame, strict=True)
        assert len({(frame["id"], frame["created"], frame["model"]) for frame in frames}) == 1
        choices = [choice for frame in frames for choice in frame["choices"]]
        assert all("finish_reason" in choice for choice in choices)
        for index in range(n):
            mine = [choice for choice in choices if choice["index"] == index]
            assert [choice["delta"].get("role") for choice in mine] == ["assistant"] + [None] * (len(mine) - 1)
            assert [choice["finish_reason"] for choice in mine] == [None] * (len(mine) - 1) + ["length"]
        assert {choice["index"] for choice in choices} == set(range(n))


def test_completion_chunks_have_the_openai_shape(tiny_server: Server) -> None:
    frames = tiny_server.frames(COMPLETIONS.path, COMPLETIONS.body("x", n=2, max_tokens=4, ignore_eos=True))
    assert frames.pop() is DONE
    for frame in frames:
        assert frame["object"] == "text_completion"
        assert all("finish_reason" in choice for choice in frame["choices"])
    assert len({(frame["id"], frame["created"], frame["model"]) for frame in frames}) == 1
    finished = [choice["index"] for frame in frames for choice in frame["choices"] if choice["finish_reason"]]
    assert sorted(finished) == [0, 1]


def test_whole_replies_have_the_openai_shape(tiny_server: Server) -> None:
    chat = tiny_server.json(CHAT.path, CHAT.body("x", n=2, max_tokens=4))
    ChatCompletion.model_validate(chat, strict=True)
    assert [choice["index"] for choice in chat["choices"]] == [0, 1]
    text = tiny_server.json(COMPLETIONS.path, {"prompt": ["x", "y"], "max_tokens": 4})
    Completion.model_validate(text, strict=True)
    assert [choice["index"] for choice in text["choices"]] == [0, 1]


@pytest.mark.parametrize("dialect", [CHAT, COMPLETIONS], ids=lambda d: d.name)
def test_ids_are_unique(tiny_server: Server, dialect: Dialect) -> None:
    ids = [tiny_server.json(dialect.path, dialect.body("x", max_tokens=1))["id"] for _ in range(4)]
    ids += [tiny_server.frames(dialect.path, dialect.body("x", max_tokens=1))[0]["id"] for _ in range(4)]
    assert len(set(ids)) == 8


@pytest.mark.parametrize("dialect", [CHAT, COMPLETIONS], ids=lambda d: d.name)
@pytest.mark.parametrize("tools", [False, True])
def test_usage_comes_as_one_last_chunk_when_asked_for(tiny_server: Server, dialect: Dialect, tools: bool) -> None:
    fields: dict[str, Any] = {"grammar": forced("hello world"), "seed": 3}
    if tools:
        fields["tools"] = [{"type": "function", "function": {"name": "f"}}]
        fields["tool_choice"] = "none"
    whole = tiny_server.json(dialect.path, dialect.body("x", **fields))
    frames = tiny_server.frames(dialect.path, dialect.body("x", stream_options={"include_usage": True}, **fields))
    assert frames.pop() is DONE
    last = frames.pop()
    assert last["choices"] == []
    assert last["id"] == frames[0]["id"]
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert last["usage"][name] == whole["usage"][name]
    assert last["usage"]["prompt_tokens_details"]["cached_tokens"] >= 0
    assert all(frame.get("usage") is None and frame["choices"] for frame in frames)

    plain = tiny_server.frames(dialect.path, dialect.body("x", **fields))
    assert all(frame.get("usage") is None and frame["choices"] for frame in plain[:-1])


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_the_finish_reason_says_why(tiny_server: Server, dialect: Dialect, stream: bool, ending: str) -> None:
    fields: dict[str, Any] = {"grammar": forced("one two three"), "temperature": 0}
    if ending == "word":
        fields["stop"] = [" two"]
    elif ending == "limit":
        fields["limit"] = 2
    answer = dialect.ask(tiny_server, "x", stream=stream, **fields)
    native = {"word": "word", "limit": "limit", "eos": "eos"}
    openai = {"word": "stop", "limit": "length", "eos": "stop"}
    assert answer.finish == (native if dialect is NATIVE else openai)[ending]
    if ending == "word":
        assert answer.text == "one"
        assert answer.stopping_word == (" two" if dialect is NATIVE else None)
    elif ending == "eos":
        assert answer.text == "one two three"
    assert answer.usage is not None and answer.usage[0] >= 1
    if ending == "limit":
        assert answer.usage[1] == 2


def test_an_end_token_ends_without_a_grammar_too(tiny_server: Server) -> None:
    end = tiny_server.json("/tokenize", {"content": "<|im_end|>", "parse_special": True, "add_special": False})["tokens"]
    (token,) = end[-1:]
    reply = tiny_server.json("/completion", {"prompt": "x", "logit_bias": [[token, 1000.0]], "temperature": 0})
    assert (reply["stop_type"], reply["content"], reply["tokens_predicted"]) == ("eos", "", 0)


def test_a_silent_stream_sends_comments(slow_server: Server) -> None:
    """Both slots are busy, so a third stream waits in silence; comments keep its connection open."""
    occupied = {"prompt": "x", "n_predict": 7000, "ignore_eos": True}
    ready = threading.Barrier(3)

    def occupy() -> None:
        with slow_server.stream("/completion", occupied) as frames:
            next(frames)
            ready.wait(20)
            leave.wait(40)

    leave = threading.Event()
    threads = [threading.Thread(target=occupy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        ready.wait(20)
        comments: list[str] = []
        with httpx.stream(
            "POST", slow_server.url + CHAT.path, json=CHAT.body("x", stream=True, max_tokens=1), timeout=30, trust_env=False
        ) as reply:
            lines = reply.iter_lines()
            for line in lines:
                if line.startswith(":"):
                    comments.append(line)
                if len(comments) == 2:
                    break
                assert not line.startswith("data:"), "an answer came before the comments"
            leave.set()
            assert any(line == "data: [DONE]" for line in lines)
    finally:
        leave.set()
        for thread in threads:
            thread.join(20)
    assert len(comments) == 2
    slow_server.wait_idle()
