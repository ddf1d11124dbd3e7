"""Anthropic's Messages: conversations in, blocks out, whole and streamed, read by Anthropic's own SDK too."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import anthropic
import httpx
import httpx2
import msgspec
import pytest

from puna.config import ServerSettings
from puna.errors import ContextExceeded, QueueFull, ServerFault
from puna.server.app import create_app
from puna.types import Chunk, Progress
from tests.fakes import FACTS, FakeEngine, Item, say
from tests.web import client

TEMPLATE = (
    "{%- if tools %}{{ '<|im_start|>system\\n<tools>' }}{% for tool in tools %}{{ tool | tojson }}{% endfor %}"
    '{{ \'</tools> <tool_call>\\n{"name": "x", "arguments": {}}\\n</tool_call><|im_end|>\\n\' }}{% endif %}'
    "{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + (m.content or '') }}"
    "{%- for call in m.tool_calls or [] %}{{ '<tool_call>\\n' + (call.function | tojson) + '\\n</tool_call>' }}{% endfor %}"
    "{{ '<|im_end|>\\n' }}{% endfor %}"
    "{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
    "{% if enable_thinking is defined and enable_thinking is false %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}{% endif %}"
)
TURN: dict[str, Any] = {"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": "hi"}]}
TOOLS = [
    {
        "name": "weather",
        "description": "tells the weather",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        "cache_control": {"type": "ephemeral"},
    },
    {"name": "clock", "input_schema": {"type": "object", "properties": {}}},
]
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'
EMPTY_CALL = '<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>'

ANSWERS = {
    "text": ["Hello", " world"],
    "thinking": ["<think>\nlet me", " see\n</think>\n\n", "Done."],
    "two calls": ["I look. ", CALL, "\n", EMPTY_CALL],
    "nothing": [],
    "letter by letter": list("<think>\na b\n</think>\n\nText " + CALL),
}


def engine(*texts: str, **more: Any) -> FakeEngine:
    return FakeEngine(
        facts=msgspec.structs.replace(FACTS, chat_template=TEMPLATE, n_ctx=4096), script=lambda _: say(*texts, **more)
    )


async def post(one: FakeEngine, body: dict[str, Any], path: str = "/v1/messages") -> httpx.Response:
    async with client(one) as web:
        return await web.post(path, json=body)


async def events(one: FakeEngine, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a stream, each with the line that names its type."""
    reply = await post(one, {**body, "stream": True})
    assert reply.status_code == 200, reply.text
    found = []
    for block in reply.text.split("\n\n")[:-1]:
        name, data = block.split("\n")
        value = json.loads(data.removeprefix("data: "))
        assert name == f"event: {value['type']}"
        found.append(value)
    return found


def check_order(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Hold a stream against the order that Anthropic's clients rely on; its blocks, put together."""
    assert [event["type"] for event in found].count("message_start") == 1 and found[0]["type"] == "message_start"
    assert found[-1]["type"] == "message_stop" and found[-2]["type"] == "message_delta"
    kinds = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "tool_use"}
    blocks: list[dict[str, Any]] = []
    current: int | None = None
    for event in found[1:-2]:
        if event["type"] == "content_block_start":
            assert current is None and event["index"] == len(blocks)
            current = event["index"]
            blocks.append({**event["content_block"], "parts": []})
        elif event["type"] == "content_block_delta":
            assert event["index"] == current
            assert kinds[event["delta"]["type"]] == blocks[-1]["type"]
            blocks[-1]["parts"].append(
                event["delta"].get("text") or event["delta"].get("thinking") or event["delta"].get("partial_json")
            )
        else:
            assert event["type"] == "content_block_stop" and event["index"] == current
            current = None
    assert current is None
    for block in blocks:
        text = "".join(block.pop("parts"))
        if block["type"] == "tool_use":
            assert block["input"] == {}
            block["input"] = json.loads(text or "{}")
        else:
            assert block[block["type"]] == ""
            block[block["type"]] = text
    return blocks


@pytest.mark.parametrize("name", ANSWERS)
async def test_a_stream_adds_up_to_the_whole_reply(name: str) -> None:
    body = {**TURN, "tools": TOOLS}
    streamed = check_order(await events(engine(*ANSWERS[name]), body))
    whole = (await post(engine(*ANSWERS[name]), body)).json()
    for block in (*streamed, *whole["content"]):
        block.pop("id", None)
    assert streamed == whole["content"]
    assert whole["stop_reason"] == ("tool_use" if "tool_call" in "".join(ANSWERS[name]) else "end_turn")


async def test_blocks_and_reasons() -> None:
    whole = (await post(engine(*ANSWERS["two calls"]), {**TURN, "tools": TOOLS})).json()
    assert [block["type"] for block in whole["content"]] == ["text", "tool_use", "tool_use"]
    assert whole["content"][1]["name"] == "weather" and whole["content"][1]["input"] == {"city": "Rome"}
    assert whole["content"][2]["input"] == {} and whole["content"][1]["id"] != whole["content"][2]["id"]
    cut = (await post(engine("<think>\nlong", stop_type="limit"), TURN)).json()
    assert [block["type"] for block in cut["content"]] == ["thinking"] and cut["stop_reason"] == "max_tokens"
    stopped = (await post(engine("a", stop_type="word", stopping_word="END"), {**TURN, "stop_sequences": ["END"]})).json()
    assert (stopped["stop_reason"], stopped["stop_sequence"]) == ("stop_sequence", "END")
    hidden = await events(engine(*ANSWERS["thinking"]), {**TURN, "thinking": {"type": "adaptive", "display": "omitted"}})
    blocks = check_order(hidden)
    assert blocks[0] == {"type": "thinking", "thinking": "", "signature": ""} and blocks[1]["text"] == "Done."


async def test_a_call_that_is_cut_off_keeps_what_has_come() -> None:
    one = engine('<tool_call>\n{"name": "weather", "arguments": {"city": "Ro', stop_type="limit")
    whole = (await post(one, {**TURN, "tools": TOOLS})).json()
    assert whole["content"][-1]["input"] == {"city": "Ro"} and whole["stop_reason"] == "max_tokens"


async def test_usage_is_known_from_the_start() -> None:
    def script(_number: int) -> Iterable[Item]:
        return [Chunk(progress=Progress(40, 30, 30, 1.0)), *say("Hi", n_prompt=40, cache_n=30)]

    one = FakeEngine(facts=msgspec.structs.replace(FACTS, chat_template=TEMPLATE), script=script)
    body = {**TURN, "system": [{"type": "text", "text": "Be brief."}]}
    found = await events(one, body)
    n_prompt = len(one.last.prompt)
    begin, end = found[0]["message"]["usage"], found[-2]["usage"]
    assert begin == {
        "input_tokens": n_prompt - 30,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 30,
        "output_tokens": 0,
    }
    assert end["output_tokens"] == 2 and end["cache_read_input_tokens"] == 30
    counted = await post(one, body, "/v1/messages/count_tokens")
    assert counted.json() == {"input_tokens": n_prompt} and len(one.streams) == 1


def text_of(one: FakeEngine) -> str:
    return one.tokenizer.detokenize(one.last.prompt)


async def test_conversations_reach_the_template() -> None:
    one = engine("ok")
    body = {
        **TURN,
        "system": [
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=1; cch=abc;"},
            {"type": "text", "text": "Rules.", "cache_control": {"type": "ephemeral"}},
        ],
        "tools": [*TOOLS, {"type": "web_search_20250305", "name": "web_search"}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "How is Rome?"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "redacted_thinking", "data": "?"},
                    {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Rome"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "sunny"}]},
                    {"type": "tool_result", "tool_use_id": "t2", "content": "no such city", "is_error": True},
                    {"type": "text", "text": "And now?"},
                ],
            },
        ],
    }
    assert (await post(one, body)).status_code == 200
    prompt = text_of(one)
    assert "billing" not in prompt and "cch" not in prompt and "Rules." in prompt
    assert "web_search" not in prompt and '"clock"' in prompt
    assert '"city": "Rome"' in prompt
    order = ["How is Rome?", "sunny", "Error: no such city", "And now?"]
    assert [prompt.find(text) for text in order] == sorted(prompt.find(text) for text in order)
    assert all(text in prompt for text in order)


@pytest.mark.parametrize("content", ["again", [{"type": "text", "text": "again"}]])
async def test_a_text_and_a_list_of_one_block_are_the_same_prompt(content: Any) -> None:
    one = engine("ok")
    messages = [{"role": "user", "content": "hi"}, {"role": "system", "content": content}]
    await post(one, {**TURN, "messages": messages})
    reference = engine("ok")
    await post(reference, {**TURN, "messages": [messages[0], {"role": "system", "content": "again"}]})
    assert one.last.prompt == reference.last.prompt


@pytest.mark.parametrize(
    "choice, mode",
    [
        ({"type": "auto"}, None),
        ({"type": "any"}, "weather|clock"),
        ({"type": "tool", "name": "clock"}, "clock"),
        ({"type": "none"}, None),
    ],
)
async def test_tool_choice(choice: dict[str, Any], mode: str | None) -> None:
    one = engine(EMPTY_CALL)
    assert (await post(one, {**TURN, "tools": TOOLS, "tool_choice": choice})).status_code == 200
    constraint = one.last.constraint
    if choice["type"] == "none":
        assert constraint is None and "<tools>" not in text_of(one)
    elif mode is None:
        assert constraint is not None and constraint.triggers
    else:
        assert constraint is not None and not constraint.triggers
        assert all((name in constraint.source) == (name in mode) for name in ("weather", "clock"))


async def test_a_tool_in_the_other_dialects_shape_is_refused() -> None:
    tool = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}
    reply = await post(engine("ok"), {**TURN, "tools": [*TOOLS, tool]})
    assert reply.status_code == 400 and f"tools.{len(TOOLS)}.type" in reply.json()["error"]["message"]
    assert "input_schema" in reply.json()["error"]["message"]


async def test_thinking_and_format() -> None:
    one = engine("{}")
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    body = {**TURN, "thinking": {"type": "disabled"}, "output_config": {"format": {"type": "json_schema", "schema": schema}}}
    assert (await post(one, body)).status_code == 200
    assert text_of(one).endswith("<think>\n\n</think>\n\n")
    assert one.last.constraint is not None
    one = engine("x")
    await post(one, {**TURN, "thinking": {"type": "enabled", "budget_tokens": 1024}})
    assert one.last.thinking is not None and one.last.thinking.budget == 1024


@pytest.mark.parametrize(
    "change, field",
    [
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content"),
        ({"messages": [{"role": "user", "content": [{"type": "novel"}]}]}, "messages.0.content.0.type"),
        ({"messages": [{"role": "user", "content": [7]}]}, "messages.0.content.0"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}, "messages.0.content.0.tool_use_id"),
        ({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "x"}]}]}, "messages.0.content.0.name"),
        ({"messages": []}, "messages"),
        ({"tools": [{"name": "x"}]}, "tools.0.input_schema"),
        ({"tools": [{"name": "", "input_schema": {}}]}, "tools.0.name"),
        ({"tools": TOOLS, "tool_choice": {"type": "tool", "name": "none such"}}, "tool_choice"),
        ({"tool_choice": {"type": "sometimes"}}, "tool_choice.type"),
        ({"max_tokens": "many"}, "max_tokens"),
        ({"top_logprobs": 3}, "top_logprobs"),
    ],
)
async def test_what_is_wrong_is_named_in_anthropics_shape(change: dict[str, Any], field: str) -> None:
    one = engine("never")
    reply = await post(one, {**TURN, **change})
    value = reply.json()
    assert reply.status_code == 400 and value["type"] == "error", reply.text
    assert value["error"]["type"] == "invalid_request_error" and value["error"]["param"] == field
    assert value["request_id"].startswith("req_") and not one.streams


async def test_errors_in_anthropics_shape() -> None:
    long = engine("x")
    long.refuse = lambda generation, _number: ContextExceeded(len(generation.prompt), 16)
    reply = await post(long, TURN)
    assert reply.status_code == 400
    assert re.fullmatch(r"prompt is too long: \d+ tokens > 16 maximum", reply.json()["error"]["message"])
    full = engine("x")
    full.refuse = lambda _generation, _number: QueueFull("full")
    busy = await post(full, TURN)
    assert busy.status_code == 429 and busy.json()["error"]["type"] == "rate_limit_error"
    async with client(engine("x"), api_keys=("k",)) as web:
        refused = await web.post("/v1/messages", json=TURN)
        assert refused.status_code == 401 and refused.json()["error"]["type"] == "authentication_error"
        assert (await web.post("/v1/messages", json=TURN, headers={"x-api-key": "k"})).status_code == 200
        assert (await web.get("/v1/messages", headers={"x-api-key": "k"})).json()["type"] == "error"
    broken = engine("x")
    broken.script = lambda _number: [Chunk(text="a", tokens=(97,), slot=0), ServerFault("it broke")]
    reply = await post(broken, {**TURN, "stream": True})
    name, data = reply.text.split("\n\n")[-2].split("\n")
    assert name == "event: error" and json.loads(data.removeprefix("data: "))["error"]["message"] == "it broke"


@pytest.mark.parametrize("name", ANSWERS)
async def test_anthropics_sdk_reads_it(name: str) -> None:
    def sdk() -> anthropic.AsyncAnthropic:
        transport = httpx2.ASGITransport(create_app(engine(*ANSWERS[name]), ServerSettings()))
        web = httpx2.AsyncClient(transport=transport, base_url="http://localhost")
        return anthropic.AsyncAnthropic(api_key="x", base_url="http://localhost", http_client=web)

    asked: dict[str, Any] = {**TURN, "tools": TOOLS}
    async with sdk().messages.stream(**asked) as stream:
        streamed = await stream.get_final_message()
    whole = await sdk().messages.create(**asked)
    assert streamed.stop_reason == whole.stop_reason
    assert [block.type for block in streamed.content] == [block.type for block in whole.content]
    assert streamed.usage.input_tokens + (streamed.usage.cache_read_input_tokens or 0) > 0
