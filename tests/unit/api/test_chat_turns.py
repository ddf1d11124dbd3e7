"""Reasoning and tools on the chat route: what goes in, and what a client makes of what comes out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi import FastAPI
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from puna.config import ServerSettings
from puna.server.app import create_app
from puna.types import Generation
from tests.chat_turns import ASKED, CALL, CALLS, RAW, SAID, TEMPLATE, THOUGHT, TOOLS, join, pieces, without_ids, write
from tests.fakes import FakeEngine
from tests.web import client, exchange, objects, ordered

CHAT = "/v1/chat/completions"
USER = ASKED["messages"]


def saying(*texts: str, **more: Any) -> FakeEngine:
    return FakeEngine(script=lambda _: write(texts, **more))


async def whole(engine: FakeEngine, **fields: Any) -> dict[str, Any]:
    async with client(engine, chat_template=TEMPLATE) as http:
        reply = await http.post(CHAT, json={**ASKED, **fields})
    assert reply.status_code == 200, reply.text
    ChatCompletion.model_validate(reply.json(), strict=True)
    found: dict[str, Any] = reply.json()
    return found


async def message_of(engine: FakeEngine, **fields: Any) -> dict[str, Any]:
    (choice,) = (await whole(engine, **fields))["choices"]
    return {**choice["message"], "finish_reason": choice["finish_reason"]}


async def streamed(engine: FakeEngine, **fields: Any) -> list[dict[str, Any]]:
    async with client(engine, chat_template=TEMPLATE) as http:
        reply = await http.post(CHAT, json={**ASKED, "stream": True, **fields})
    frames = objects(reply.text)
    for frame in frames:
        ChatCompletionChunk.model_validate(frame, strict=True)
    return frames


async def refusal(fields: dict[str, Any], status: int = 400) -> Any:
    engine = FakeEngine()
    async with client(engine, chat_template=TEMPLATE) as http:
        reply = await http.post(CHAT, json={"messages": USER, **fields})
    assert reply.status_code == status, reply.text
    assert not engine.streams
    return reply.json()["error"]["param"]


async def test_a_whole_reply() -> None:
    message = await message_of(saying(RAW))
    assert len({call["id"] for call in message["tool_calls"]}) == 2
    assert without_ids(message) == {
        "role": "assistant",
        "content": SAID,
        "reasoning_content": THOUGHT,
        "tool_calls": CALLS,
        "finish_reason": "tool_calls",
    }


async def test_content_is_null_beside_calls_alone() -> None:
    message = await message_of(saying(CALL))
    assert message["content"] is None and "reasoning_content" not in message
    assert (await message_of(saying("")))["content"] == ""


@pytest.mark.parametrize("fields", [{}, {"reasoning_format": "none"}, {"reasoning_format": "deepseek-legacy"}], ids=ordered)
async def test_streamed_is_whole_wherever_it_is_split(fields: dict[str, Any]) -> None:
    expected = without_ids(await message_of(saying(RAW), **fields))
    for cut in range(0, len(RAW), 11):
        frames = await streamed(saying(*pieces(RAW, cut, cut + 3)), **fields)
        assert without_ids(join(frames)) == expected, cut
    assert without_ids(join(await streamed(saying(*RAW), **fields))) == expected


@pytest.mark.parametrize("end", range(0, len(RAW), 13))
async def test_a_truncated_answer_is_the_same_both_ways_and_leaks_no_tag(end: int) -> None:
    message = await message_of(saying(RAW[:end], stop_type="limit"))
    assert message["finish_reason"] == "length"
    assert "<" not in (message["content"] or "") and "<" not in message.get("reasoning_content", "")
    frames = await streamed(saying(*RAW[:end], stop_type="limit"))
    assert without_ids(join(frames)) == without_ids(message)


async def test_where_reasoning_is_shown() -> None:
    inline = await message_of(saying(RAW), reasoning_format="none")
    assert "reasoning_content" not in inline and inline["content"] == f"<think>\n{THOUGHT}\n</think>\n\n{SAID}"
    both = await message_of(saying(RAW), reasoning_format="deepseek-legacy")
    assert both["reasoning_content"] == THOUGHT and both["content"] == inline["content"]
    assert without_ids(both)["tool_calls"] == CALLS
    for name in ("auto", "deepseek"):
        assert (await message_of(saying(RAW), reasoning_format=name))["content"] == SAID


async def test_calls_can_be_left_in_the_text() -> None:
    message = await message_of(saying(RAW), parse_tool_calls=False)
    assert "tool_calls" not in message and message["content"].endswith("</tool_call>") and CALL in message["content"]
    assert message["reasoning_content"] == THOUGHT and message["finish_reason"] == "stop"


async def test_usage_counts_reasoning() -> None:
    reply = await whole(saying(*RAW))
    usage = reply["usage"]
    reasoning = usage["completion_tokens_details"]["reasoning_tokens"]
    assert len(THOUGHT.encode()) <= reasoning <= len(f"<think>\n{THOUGHT}\n</think>\n\n".encode())
    assert usage["completion_tokens"] == len(RAW.encode())
    frames = await streamed(saying(*RAW), stream_options={"include_usage": True})
    assert frames[-1]["usage"] == usage and frames[-1]["choices"] == []


async def test_several_answers_have_calls_of_their_own() -> None:
    def engine() -> FakeEngine:
        return FakeEngine(script=lambda number: write([*RAW] if number == 0 else ["Hello"]))

    reply = await whole(engine(), n=2)
    first, second = reply["choices"]
    assert first["finish_reason"] == "tool_calls" and second["finish_reason"] == "stop"
    assert second["message"] == {"role": "assistant", "content": "Hello"}
    frames = await streamed(engine(), n=2)
    assert without_ids(join(frames, 0)) == without_ids({**first["message"], "finish_reason": "tool_calls"})
    assert join(frames, 1) == {**second["message"], "finish_reason": "stop"}


async def test_older_clients_get_calls_as_they_know_them() -> None:
    fields = {"tools": None, "functions": [tool["function"] for tool in TOOLS]}
    message = await message_of(saying(RAW), **fields)
    call = {"name": CALLS[0][0], "arguments": CALLS[0][1]}
    assert message["function_call"] == call and "tool_calls" not in message and message["finish_reason"] == "function_call"
    joined = join(await streamed(saying(*RAW), **fields))
    assert joined == message


async def test_probabilities_stay_with_their_tokens() -> None:
    fields = {"logprobs": True, "return_tokens": True}
    reply = await whole(saying(*RAW, probs=True), **fields)
    entries = reply["choices"][0]["logprobs"]["content"]
    assert bytes(byte for entry in entries for byte in entry["bytes"]) == RAW.encode()
    frames = await streamed(saying(*RAW, probs=True), **fields)
    choices = [choice for frame in frames for choice in frame["choices"]]
    shown = [entry for choice in choices if choice.get("logprobs") for entry in choice["logprobs"]["content"]]
    assert shown == entries
    assert [token for choice in choices for token in choice.get("tokens", ())] == list(RAW.encode())
    # Tokens of a mark are told of when they come, though nothing of it is ever said.
    seen = ""
    for choice in choices:
        seen += "".join(entry["token"] for entry in (choice.get("logprobs") or {"content": []})["content"])
        if choice["delta"].get("content"):
            assert "</think>" in seen
    assert without_ids(join(frames))["tool_calls"] == CALLS


async def test_a_stop_string_of_the_request_ends_the_turn() -> None:
    message = await message_of(saying("Hello", stop_type="word", stopping_word="!"), stop=["!"])
    assert message["finish_reason"] == "stop" and message["content"] == "Hello"


# What the engine is asked for


async def asked_of_the_engine(**fields: Any) -> Generation:
    engine = saying("")
    await whole(engine, **fields)
    return engine.last


async def prompt_of(**fields: Any) -> str:
    return bytes(token for token in (await asked_of_the_engine(**fields)).prompt if token < 256).decode()


async def test_tools_are_shown_unless_they_must_not_be_called() -> None:
    assert "Tell the weather." in await prompt_of()
    for choice in ("required", {"type": "function", "function": {"name": "now"}}):
        assert await prompt_of(tool_choice=choice) == await prompt_of()
    assert "Tell the weather." not in await prompt_of(tool_choice="none")


@pytest.mark.parametrize(
    "choice, names",
    [
        ("required", {"get_weather", "now"}),
        ({"type": "function", "function": {"name": "now"}}, {"now"}),
        ({"type": "function", "name": "now"}, {"now"}),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [TOOLS[1]]}}, {"now"}),
        ({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "now"}]}, {"now"}),
    ],
    ids=ordered,
)
async def test_a_choice_is_a_constraint(choice: Any, names: set[str]) -> None:
    constraint = (await asked_of_the_engine(tool_choice=choice)).constraint
    assert constraint is not None and constraint.compiled and not constraint.triggers
    assert {name for name in ("get_weather", "now") if name in constraint.source} == names


async def test_a_call_that_is_left_to_the_model_is_constrained_once_it_begins() -> None:
    constraint = (await asked_of_the_engine()).constraint
    assert constraint is not None and [trigger.value for trigger in constraint.triggers] == ["<tool_call>"]
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [TOOLS[1]]}}
    constraint = (await asked_of_the_engine(tool_choice=allowed)).constraint
    assert constraint is not None and constraint.triggers and "get_weather" not in constraint.source
    assert (await asked_of_the_engine(tool_choice="none")).constraint is None
    assert (await asked_of_the_engine(tools=[])).constraint is None


async def test_an_answer_can_be_constrained_beside_thoughts_and_tools() -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object", "properties": {"zz": {}}}}}
    with_tools = (await asked_of_the_engine(response_format=schema)).constraint
    alone = (await asked_of_the_engine(response_format=schema, tools=None)).constraint
    for constraint in (with_tools, alone):
        assert constraint is not None and "zz" in constraint.source and "think" in constraint.source
    assert with_tools is not None and "get_weather" in with_tools.source
    required = (await asked_of_the_engine(response_format=schema, tool_choice="required")).constraint
    assert required is not None and "zz" not in required.source


@pytest.mark.parametrize(
    "fields, budget, message",
    [
        ({}, -1, ""),
        ({"reasoning_budget_tokens": 5}, 5, ""),
        ({"reasoning_budget": 5, "reasoning_budget_message": "Now."}, 5, "Now."),
        ({"thinking_budget_tokens": 0}, 0, ""),
        ({"enable_thinking": False, "reasoning_budget_message": "Now."}, 0, ""),
        ({"reasoning_effort": "none"}, 0, ""),
    ],
)
async def test_budgets(fields: dict[str, Any], budget: int, message: str) -> None:
    thinking = (await asked_of_the_engine(**fields)).thinking
    assert thinking is not None and thinking.budget == budget and bytes(thinking.message).decode() == message
    assert (thinking.begin, thinking.end, bytes(thinking.close)) == ("<think>", "</think>", b"\n</think>\n\n")


async def test_servers_have_defaults_for_reasoning() -> None:
    engine = saying(RAW)
    settings: dict[str, Any] = {"reasoning_budget": 7, "reasoning_budget_message": "Now.", "reasoning_format": "none"}
    async with client(engine, chat_template=TEMPLATE, **settings) as http:
        reply = (await http.post(CHAT, json=ASKED)).json()
    assert reply["choices"][0]["message"]["content"].startswith("<think>")
    assert engine.last.thinking is not None and engine.last.thinking.budget == 7 and engine.last.thinking.message
    async with client(engine, chat_template=TEMPLATE, reasoning=False) as http:
        await http.post(CHAT, json=ASKED)
        assert engine.last.thinking is not None and engine.last.thinking.budget == 0
        await http.post(CHAT, json={**ASKED, "enable_thinking": True})
        assert engine.last.thinking.budget == -1


# Ending reasoning in mid-answer


async def control(app: FastAPI, body: dict[str, Any]) -> tuple[int | None, dict[str, Any]]:
    async with exchange(app, f"{CHAT}/control", body) as asking:
        await asking.until(lambda: asking.complete)
        return asking.status, json.loads(b"".join(asking.writes))


@pytest.mark.parametrize(
    "fields, possible", [({}, True), ({"reasoning_control": False}, False), ({"reasoning_format": "none"}, True)]
)
async def test_reasoning_can_be_ended_while_it_goes_on(fields: dict[str, Any], possible: bool) -> None:
    engine = FakeEngine(script=lambda _: [*write(["<think>", "long"])[:-1], 0.2, *write(["</think>", "answer"])])
    app = create_app(engine, ServerSettings(chat_template=TEMPLATE))
    async with exchange(app, CHAT, {**ASKED, "stream": True, **fields}) as running:
        await running.until(lambda: running.writes)
        id = objects(running.writes[0].decode())[0]["id"]
        status, reply = await control(app, {"id": id, "action": "reasoning_end"})
        assert status == 200 and reply["success"] is possible and engine.streams[0].thinking_ended is possible
        await running.until(lambda: running.complete)
    status, reply = await control(app, {"id": id, "action": "reasoning_end"})
    assert status == 200 and reply["success"] is False and reply["message"]


@pytest.mark.parametrize("body", [{"id": "x", "action": "stop"}, {"id": "x"}, {"id": "", "action": "reasoning_end"}, {}])
async def test_controls_that_are_none(body: dict[str, Any]) -> None:
    status, reply = await control(create_app(FakeEngine(), ServerSettings()), body)
    assert status == 400 and reply["error"]["param"] in ("id", "action")


# Conversations


async def test_calls_and_results_in_earlier_turns() -> None:
    history = [
        *USER,
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": THOUGHT,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "noon"}]},
    ]
    prompt = await prompt_of(messages=history)
    assert f"<think>{THOUGHT}</think>" in prompt and '{"name": "now", "arguments": {}}' in prompt and "noon" in prompt
    older = [
        *USER,
        {"role": "assistant", "reasoning": THOUGHT, "function_call": {"name": "now", "arguments": "{}"}},
        {"role": "function", "name": "now", "content": "noon"},
    ]
    assert await prompt_of(messages=older) == prompt


@pytest.mark.parametrize("arguments", ["{", "", "null", {"a": 1}, "[1]", None])
async def test_a_bad_call_in_an_earlier_turn_does_not_end_the_conversation(arguments: Any) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    assert "get_weather" in await prompt_of(tools=None, messages=[*USER, {"role": "assistant", "tool_calls": [call]}, *USER])


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "function": {"name": "f"}},
        {"type": "function", "function": {"name": "f", "parameters": {}}},
        {"type": "function", "function": {"name": "f", "parameters": None, "description": None, "strict": None}},
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}},
        {"function": {"name": "f", "parameters": {"properties": {}}}},
        {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
        {"type": "function", "function": {"name": "f.g/h:i ☃", "strict": True}},
        {"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"pattern": "^(?=a)b$"}}}}},
    ],
    ids=json.dumps,
)
async def test_valid_declarations(tool: dict[str, Any]) -> None:
    assert (await asked_of_the_engine(tools=[tool], tool_choice="required")).constraint is not None


@pytest.mark.parametrize(
    "fields, param",
    [
        ({"tools": [1]}, "tools.0"),
        ({"tools": [TOOLS[0], {"type": "web_search"}]}, "tools.1.type"),
        ({"tools": [{"type": "function", "function": {"name": ""}}]}, "tools.0.function.name"),
        ({"tools": [{"type": "function", "function": {"name": "a\nb"}}]}, "tools.0.function.name"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]}, None),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": [1]}}]}, "tools.0.function.parameters"),
        ({"tools": [{"type": "function", "function": {"name": "f", "parameters": True}}]}, "tools.0.function.parameters"),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "array"}}}]},
            "tools.0.function.parameters.type",
        ),
        ({"tools": [{"type": "function", "function": {"name": "f", "description": 1}}]}, "tools.0.function.description"),
        ({"tools": [{"type": "function", "function": {"name": "f", "strict": 1}}]}, "tools.0.function.strict"),
        ({"tools": [TOOLS[1], {"type": "function", "function": {"name": "now", "description": "x"}}]}, "tools.1.function.name"),
        ({"tools": TOOLS, "functions": [TOOLS[0]["function"]]}, "functions"),
        ({"functions": [{"description": "x"}]}, "functions.0.name"),
        ({"functions": [TOOLS[0]["function"]], "function_call": {"name": "g"}}, "tool_choice"),
        ({"functions": [TOOLS[0]["function"]], "function_call": 3}, "function_call.name"),
        ({"tools": TOOLS, "tool_choice": "f"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": 1}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {}}}, "tool_choice.function.name"),
        ({"tools": TOOLS, "tool_choice": {"type": "allowed_tools"}}, "tool_choice.allowed_tools.tools"),
        (
            {"tools": TOOLS, "tool_choice": {"type": "allowed_tools", "mode": "none", "tools": []}},
            "tool_choice.allowed_tools.mode",
        ),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"reasoning_format": "x"}, "reasoning_format"),
        ({"reasoning_budget_tokens": -2}, "reasoning_budget_tokens"),
        ({"reasoning_budget": 1.5}, "reasoning_budget"),
        ({"chat_template_kwargs": {"enable_thinking": "no"}}, "chat_template_kwargs.enable_thinking"),
        (
            {"tools": TOOLS, "grammar": 'root ::= "a"', "grammar_lazy": True, "grammar_triggers": [{"type": 1, "value": "xyz"}]},
            "grammar",
        ),
        (
            {
                "tools": [
                    {
                        "type": "function",
                        "function": {"name": "f", "strict": True, "parameters": {"properties": {"a": {"pattern": "(?=a)b"}}}},
                    }
                ]
            },
            "tools",
        ),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"type": "x"}}}}}]},
            "tools",
        ),
        ({"tools": TOOLS, "response_format": {"type": "json_object", "schema": {"type": "x"}}}, "response_format.schema"),
        ({"messages": [*USER, {"role": "assistant", "function_call": {"arguments": "{}"}}]}, "messages.1.function_call.name"),
    ],
    ids=ordered,
)
async def test_what_is_refused(fields: dict[str, Any], param: str | None) -> None:
    if param is None:
        assert (await asked_of_the_engine(**fields)).prompt
    else:
        assert await refusal(fields) == param
