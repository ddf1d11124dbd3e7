"""OpenAI's Responses: items in, items out, whole and streamed, kept and gone on from, read by OpenAI's own SDK too."""

from __future__ import annotations

import json
from typing import Any

import httpx
import httpx2
import msgspec
import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from puna.api.responses.store import ResponseStore
from puna.config import ServerSettings
from puna.errors import ContextExceeded, ServerFault
from puna.server.app import create_app
from puna.service.chat import Message
from puna.types import Chunk
from tests.fakes import FACTS, FakeEngine, say
from tests.unit.api.test_anthropic import CALL, EMPTY_CALL, TEMPLATE
from tests.web import client

EVENTS: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)
TURN: dict[str, Any] = {"model": "m", "input": "hi"}
TOOLS = [
    {
        "type": "function",
        "name": "weather",
        "description": "tells the weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        "strict": False,
    },
    {"type": "function", "name": "clock", "parameters": {"type": "object", "properties": {}}},
]
ANSWERS = {
    "text": ["Hello", " world"],
    "thinking": ["<think>\nlet me", " see\n</think>\n\n", "Done."],
    "two calls": ["I look. ", CALL, "\n", EMPTY_CALL],
    "nothing": [],
    "letter by letter": list("<think>\na b\n</think>\n\nText " + CALL),
}


def engine(*texts: str, **more: Any) -> FakeEngine:
    facts = msgspec.structs.replace(FACTS, chat_template=TEMPLATE, n_ctx=4096)
    return FakeEngine(facts=facts, script=lambda _: say(*texts, **more))


async def post(one: FakeEngine, body: dict[str, Any], path: str = "/v1/responses") -> httpx.Response:
    async with client(one) as web:
        return await web.post(path, json=body)


async def events(one: FakeEngine, body: dict[str, Any]) -> list[dict[str, Any]]:
    """The events of a stream, each valid under OpenAI's own types, numbered, and with a line that names its type."""
    reply = await post(one, {**body, "stream": True})
    assert reply.status_code == 200, reply.text
    found: list[dict[str, Any]] = []
    for block in reply.text.split("\n\n")[:-1]:
        name, data = block.split("\n")
        value = json.loads(data.removeprefix("data: "))
        assert name == f"event: {value['type']}" and value["sequence_number"] == len(found)
        EVENTS.validate_python(value)
        found.append(value)
    return found


def check_order(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Hold a stream against the documented order; the items that were done."""
    assert [event["type"] for event in found[:2]] == ["response.created", "response.in_progress"]
    assert len({event["response"]["id"] for event in found if "response" in event}) == 1
    items: list[dict[str, Any]] = []
    current: dict[str, Any] | None = None
    text = ""
    for event in found[2:-1]:
        kind = event["type"]
        if kind == "response.output_item.added":
            assert current is None and event["output_index"] == len(items)
            current, text = event["item"], ""
            continue
        assert current is not None and event["output_index"] == len(items)
        if kind == "response.output_item.done":
            assert event["item"]["id"] == current["id"]
            assert event["item"].get("call_id") == current.get("call_id")
            items.append(event["item"])
            current = None
            continue
        assert event["item_id"] == current["id"]
        if kind.endswith(".delta"):
            text += event["delta"]
        elif kind == "response.function_call_arguments.done":
            assert event["arguments"] == (text or "{}")
        elif kind.endswith("_text.done"):
            assert event["text"] == text
        elif kind == "response.content_part.done":
            assert event["part"]["text"] == text
    assert current is None
    return items


def bare(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in item.items() if key not in ("id", "call_id")} for item in items]


@pytest.mark.parametrize("name", ANSWERS)
async def test_a_stream_adds_up_to_the_whole_reply(name: str) -> None:
    body = {**TURN, "tools": TOOLS}
    found = await events(engine(*ANSWERS[name]), body)
    items = check_order(found)
    last = found[-1]
    assert last["type"] == "response.completed" and last["response"]["output"] == items
    whole = (await post(engine(*ANSWERS[name]), body)).json()
    Response.model_validate(whole)
    assert bare(whole["output"]) == bare(items)
    assert whole["usage"] == last["response"]["usage"] and whole["status"] == "completed"


async def test_items_and_usage() -> None:
    whole = (await post(engine("<think>\nhm\n</think>\n\n", "Hi ", CALL), {**TURN, "tools": TOOLS})).json()
    reasoning, message, call = whole["output"]
    assert reasoning["content"][0]["text"].strip() == "hm" and reasoning["summary"] == []
    assert message["content"][0]["type"] == "output_text" and message["content"][0]["text"].strip() == "Hi"
    assert call["name"] == "weather" and json.loads(call["arguments"]) == {"city": "Rome"}
    assert call["id"].startswith("fc_") and call["call_id"] != call["id"]
    usage = whole["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["input_tokens_details"]["cached_tokens"] == 3 and usage["output_tokens_details"]["reasoning_tokens"] > 0


async def test_an_answer_that_is_cut_is_incomplete() -> None:
    found = await events(engine("so long", stop_type="limit"), {**TURN, "max_output_tokens": 3})
    last = found[-1]
    assert last["type"] == "response.incomplete"
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert check_order(found)[0]["status"] == "incomplete"


async def test_an_answer_that_fails() -> None:
    one = engine()
    one.script = lambda _number: [Chunk(text="a", tokens=(97,), slot=0), ServerFault("it broke")]
    found = await events(one, TURN)
    assert found[-1]["type"] == "response.failed" and found[-1]["response"]["status"] == "failed"
    assert found[-1]["response"]["error"] == {"code": "server_error", "message": "it broke"}
    one.refuse = lambda generation, _number: ContextExceeded(len(generation.prompt), 16)
    reply = await post(one, {**TURN, "stream": True})
    assert reply.status_code == 400 and reply.json()["error"]["code"] == "context_length_exceeded"


def prompt_of(one: FakeEngine) -> str:
    return one.tokenizer.detokenize(one.last.prompt)


async def test_what_codex_sends_reaches_the_template() -> None:
    one = engine("ok")
    body = {
        "model": "m",
        "client_metadata": {"a": "b"},
        "include": [],
        "prompt_cache_key": "k",
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [*TOOLS, {"type": "web_search"}, {"type": "custom", "name": "apply_patch"}, {"type": "namespace", "tools": []}],
        "input": [
            {"type": "message", "role": "developer", "id": "x", "content": [{"type": "input_text", "text": "Rules."}]},
            {"role": "user", "content": "Look."},
            {"type": "reasoning", "summary": [], "content": None, "encrypted_content": ""},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "name": "weather", "arguments": '{"city":"Rome"}', "call_id": "c1"},
            {"type": "function_call", "name": "clock", "arguments": "", "call_id": "c2", "status": "completed"},
            {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
            {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "noon"}]},
            {"type": "web_search_call", "id": "w", "status": "completed"},
        ],
    }
    reply = await post(one, body)
    assert reply.status_code == 200, reply.text
    prompt = prompt_of(one)
    places = [prompt.find(text) for text in ("Rules.", "Look.", "I look.", '"Rome"', '"clock"', "sunny", "noon")]
    assert -1 not in places
    said, result = prompt.find("I look."), prompt.find("sunny")
    assert prompt.count("<|im_start|>assistant") == 2 and said < prompt.find('"Rome"', said) < result < prompt.find("noon")
    assert "web_search" not in prompt and "apply_patch" not in prompt


async def test_going_on_from_a_reply() -> None:
    one = engine("First answer")
    async with client(one) as web:
        begin = (await web.post("/v1/responses", json={**TURN, "instructions": "Be kind."})).json()
        assert (await web.get(f"/v1/responses/{begin['id']}")).json() == begin
        next_body = {"model": "m", "input": "And then?", "previous_response_id": begin["id"], "stream": True}
        reply = await web.post("/v1/responses", json=next_body)
        assert reply.status_code == 200
        prompt = prompt_of(one)
        assert "Be kind." not in prompt
        places = [prompt.find(text) for text in ("hi", "First answer", "And then?")]
        assert -1 not in places and places == sorted(places)
        streamed = json.loads(reply.text.split("\n\n")[-2].split("\n")[1].removeprefix("data: "))["response"]
        assert (await web.get(f"/v1/responses/{streamed['id']}")).json() == streamed
        assert (await web.delete(f"/v1/responses/{begin['id']}")).json()["deleted"] is True
        for method in ("GET", "DELETE"):
            assert (await web.request(method, f"/v1/responses/{begin['id']}")).status_code == 404
        gone = await web.post("/v1/responses", json={**TURN, "previous_response_id": begin["id"]})
        assert gone.status_code == 404 and gone.json()["error"]["param"] == "previous_response_id"
        unkept = (await web.post("/v1/responses", json={**TURN, "store": False})).json()
        assert unkept["store"] is False
        assert (await web.get(f"/v1/responses/{unkept['id']}")).status_code == 404


def test_the_store_is_bounded() -> None:
    store = ResponseStore(max_entries=3, max_bytes=1000)
    turn = (Message(role="user", content="x"),)
    for name in "abc":
        store.put(name, b"{}", turn)
    assert store.get("a") is not None
    store.put("d", b"{}", turn)
    assert [name for name in "abcd" if store.get(name)] == ["a", "c", "d"]
    store.put("e", b"x" * 900, turn)
    assert len(store) == 1 and store.n_bytes <= 1000
    store.put("f", b"x" * 2000, turn)
    assert store.get("f") is None and store.get("e") is not None
    assert store.delete("e") and not store.delete("e") and store.n_bytes == 0


async def test_counting() -> None:
    one = engine("x")
    body = {**TURN, "instructions": "Rules."}
    await post(one, body)
    reply = await post(one, body, "/v1/responses/input_tokens")
    assert reply.json() == {"object": "response.input_tokens", "input_tokens": len(one.last.prompt)}
    chat = {"messages": [{"role": "user", "content": "hi"}]}
    await post(one, chat, "/v1/chat/completions")
    reply = await post(one, chat, "/v1/chat/completions/input_tokens")
    assert reply.json()["input_tokens"] == len(one.last.prompt) and len(one.streams) == 2


async def test_format_choice_and_effort() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    one = engine('{"a":1}')
    body = {**TURN, "text": {"format": {"type": "json_schema", "name": "n", "schema": schema, "strict": True}}}
    reply = await post(one, {**body, "reasoning": {"effort": "none"}})
    assert reply.status_code == 200 and reply.json()["text"]["format"]["schema"] == schema
    assert one.last.constraint is not None and prompt_of(one).endswith("<think>\n\n</think>\n\n")
    for choice, called in (
        ("required", ("weather", "clock")),
        ({"type": "function", "name": "clock"}, ("clock",)),
        ({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "weather"}]}, ("weather",)),
    ):
        assert (await post(one, {**TURN, "tools": TOOLS, "tool_choice": choice})).status_code == 200
        constraint = one.last.constraint
        assert constraint is not None and not constraint.triggers
        assert [name for name in ("weather", "clock") if name in constraint.source] == list(called)


@pytest.mark.parametrize(
    "change, field",
    [
        ({"input": 5}, "input"),
        ({"input": None}, "input"),
        ({"input": [7]}, "input.0"),
        ({"input": [{"type": "novel"}]}, "input.0.type"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input.0.role"),
        ({"input": [{"role": "user"}]}, "input.0.content"),
        ({"input": [{"role": "user", "content": [{"type": "novel"}]}]}, "input.0.content.0.type"),
        ({"input": [{"type": "function_call", "name": "x", "arguments": "{}"}]}, "input.0.call_id"),
        ({"input": [{"type": "function_call_output", "call_id": "x"}]}, "input.0.output"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input.0.type"),
        ({"tools": [3]}, "tools.0"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "name": "none such"}}, "tool_choice"),
        ({"tool_choice": {"type": "web_search"}}, "tool_choice.type"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"include": ["message.output_text.logprobs"]}, "include"),
        ({"truncation": "auto"}, "truncation"),
        ({"background": True}, "background"),
        ({"conversation": "c"}, "conversation"),
        ({"max_output_tokens": "x"}, "max_output_tokens"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
    ],
)
async def test_what_is_wrong_is_named(change: dict[str, Any], field: str) -> None:
    one = engine("never")
    reply = await post(one, {**TURN, **change})
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["param"] == field and not one.streams


@pytest.mark.parametrize("name", ANSWERS)
async def test_openais_sdk_reads_it(name: str) -> None:
    def sdk() -> openai.AsyncOpenAI:
        transport = httpx2.ASGITransport(create_app(engine(*ANSWERS[name]), ServerSettings()))
        web = httpx2.AsyncClient(transport=transport, base_url="http://localhost")
        return openai.AsyncOpenAI(api_key="x", base_url="http://localhost/v1", http_client=web)

    asked: dict[str, Any] = {**TURN, "tools": TOOLS}
    async with sdk().responses.stream(**asked) as stream:
        streamed = await stream.get_final_response()
    whole = await sdk().responses.create(**asked)
    assert [item.type for item in streamed.output] == [item.type for item in whole.output]
    assert streamed.output_text == whole.output_text
