"""Messages in the forms that chat clients send."""

from __future__ import annotations

from typing import Any

import pytest

from puna.api.messages import ChatFields, decode_conversation
from puna.chat import Message, TextPart, ToolCall
from puna.errors import PunaError
from tests.web import client

CHAT = "/v1/chat/completions"


def decode(*messages: dict[str, Any]) -> tuple[Message, ...]:
    return decode_conversation(ChatFields.model_validate({"messages": list(messages)})).messages


@pytest.mark.parametrize(
    "content, expected",
    [
        ("hi", "hi"),
        ("", ""),
        (None, None),
        ([], ()),
        ([{"type": "text", "text": "a", "cache_control": {}}, "b"], (TextPart("a"), TextPart("b"))),
    ],
)
def test_content(content: Any, expected: Any) -> None:
    (message,) = decode({"role": "user", "content": content, "unknown": 1})
    assert message == Message(role="user", content=expected)


@pytest.mark.parametrize(
    "arguments, expected",
    [('{"a":1}', '{"a":1}'), ("{", "{"), ("", "{}"), ("null", "null"), ({"a": 1}, '{"a":1}'), (None, "{}"), ("[1]", "[1]")],
)
def test_calls_in_the_history_never_fail(arguments: Any, expected: str) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    assistant, tool = decode({"role": "assistant", "tool_calls": [call]}, {"role": "tool", "content": "x", "tool_call_id": "c1"})
    assert assistant.tool_calls == (ToolCall(id="c1", name="f", arguments=expected),)
    assert tool.tool_call_id == "c1"


def image(url: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": url}]}


@pytest.mark.parametrize(
    "message, status, param",
    [
        ({}, 400, "messages.0.role"),
        ({"content": "x"}, 400, "messages.0.role"),
        ({"role": None}, 400, "messages.0.role"),
        ({"role": 5}, 400, "messages.0.role"),
        ({"role": "banana", "content": "x"}, 400, "messages.0.role"),
        (5, 400, "messages.0"),
        ({"role": "user", "contents": "x"}, 400, "messages.0.content"),
        ({"role": "user", "content": 5}, 400, "messages.0.content"),
        ({"role": "user", "content": {"a": 1}}, 400, "messages.0.content"),
        ({"role": "user", "content": [5]}, 400, "messages.0.content.0.type"),
        ({"role": "user", "content": [{"type": "text"}]}, 400, "messages.0.content.0.text"),
        ({"role": "user", "content": [{"type": "smell", "smell": "x"}]}, 400, "messages.0.content.0.type"),
        ({"role": "user", "content": [{"type": ["text"]}]}, 400, "messages.0.content.0.type"),
        (image({"url": "http://127.0.0.1/x"}), 400, "messages.0.content.1.image_url"),
        (image("file:///etc/passwd"), 400, "messages.0.content.1.image_url"),
        (image(None), 400, "messages.0.content.1.image_url"),
        (image({"url": "data:image/png;base64,AAAA"}), 501, "messages.0.content.1"),
        ({"role": "assistant", "tool_calls": [{}]}, 400, "messages.0.tool_calls.0.function.name"),
        ({"role": "assistant", "tool_calls": "x"}, 400, "messages.0.tool_calls"),
    ],
)
async def test_bad_messages_are_refused_by_place(message: Any, status: int, param: str) -> None:
    async with client() as http:
        reply = await http.post(CHAT, json={"messages": [message]})
    assert reply.status_code == status, reply.text
    assert reply.json()["error"]["param"] == param


@pytest.mark.parametrize("messages", [None, "hi", 5, {"role": "user"}, []])
async def test_no_messages_are_refused(messages: Any) -> None:
    async with client() as http:
        reply = await http.post(CHAT, json={"messages": messages})
    assert reply.status_code == 400 and reply.json()["error"]["param"] == "messages"


async def test_a_templates_refusal_is_a_short_400() -> None:
    template = "{% if messages|length > 1 %}{{ raise_exception('roles must alternate') }}{% endif %}{{ messages[0].content }}"
    async with client(chat_template=template) as http:
        reply = await http.post(
            CHAT, json={"messages": [{"role": role, "content": "a"} for role in ("user", "assistant", "user")]}
        )
        assert (await http.post(CHAT, json={"messages": [{"role": "user", "content": "a"}]})).status_code == 200
    error = reply.json()["error"]
    assert reply.status_code == 400 and "roles must alternate" in error["message"] and len(error["message"]) < 300


@pytest.mark.parametrize(
    "fields, shown",
    [
        ({"chat_template_kwargs": {"a": 1}, "reasoning_effort": "low"}, "1 low "),
        ({"reasoning_effort": "none"}, "  False"),
        ({"enable_thinking": True}, "  True"),
        ({"enable_thinking": False, "chat_template_kwargs": {"enable_thinking": True}}, "  True"),
        ({"chat_template_kwargs": {"enable_thinking": False}}, "  False"),
        ({"chat_template_kwargs": {"reasoning_effort": "high"}, "reasoning_effort": "low"}, " high "),
    ],
)
async def test_what_is_said_of_reasoning_reaches_the_template(fields: dict[str, Any], shown: str) -> None:
    template = "{{ a }} {{ reasoning_effort }} {{ enable_thinking }}"
    async with client(chat_template=template) as http:
        reply = await http.post("/apply-template", json={"messages": [{"role": "user", "content": "x"}], **fields})
    assert reply.json()["prompt"] == shown


def test_errors_are_ours() -> None:
    with pytest.raises(PunaError):
        decode({"role": "user", "content": object()})
