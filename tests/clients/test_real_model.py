"""The default model, made to call a tool, by the SDKs of all three dialects; a second turn finds the first in the cache."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from tests.e2e.server import Server

pytestmark = pytest.mark.model

SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "Oslo"]}},
    "required": ["city"],
    "additionalProperties": False,
}
QUESTION: Any = {"role": "user", "content": "How is the weather in Rome?"}


@pytest.fixture(scope="module")
def server(embedded_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("server") / "log"
    with Server(embedded_model, "-c", "2048", "-np", "1", "--request-log", log=log) as server:
        yield server
        server.stop()


def test_chat(server: Server) -> None:
    tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
    with openai.OpenAI(base_url=server.url + "/v1", api_key="x") as client:
        named: Any = {"type": "function", "function": {"name": "weather"}}
        with client.chat.completions.stream(model="m", messages=[QUESTION], tools=tools, tool_choice=named) as stream:
            message: Any = stream.get_final_completion().choices[0].message
        (call,) = message.tool_calls
        assert json.loads(call.function.arguments)["city"] in ("Rome", "Oslo")
        result: Any = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
        second = client.chat.completions.create(model="m", messages=[QUESTION, message, result], tools=tools, max_tokens=4)
    assert second.usage is not None and second.usage.prompt_tokens_details is not None
    assert second.usage.prompt_tokens_details.cached_tokens


def test_responses(server: Server) -> None:
    tools: Any = [{"type": "function", "name": "weather", "parameters": SCHEMA}]
    with openai.OpenAI(base_url=server.url + "/v1", api_key="x") as client:
        # A weak model that may go on with another call does so until the context is full.
        once: Any = {"tool_choice": "required", "parallel_tool_calls": False, "temperature": 0}
        with client.responses.stream(model="m", input=[QUESTION], tools=tools, **once) as stream:
            first = stream.get_final_response()
        call = next(item for item in first.output if item.type == "function_call")
        assert json.loads(call.arguments)["city"] in ("Rome", "Oslo")
        result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
        second = client.responses.create(
            model="m", input=[result], tools=tools, previous_response_id=first.id, max_output_tokens=4
        )
    assert second.usage is not None and second.usage.input_tokens_details.cached_tokens


def test_messages(server: Server) -> None:
    tools: Any = [{"name": "weather", "input_schema": SCHEMA}]
    with anthropic.Anthropic(base_url=server.url, api_key="x") as client:
        choice: Any = {"type": "tool", "name": "weather"}
        with client.messages.stream(model="m", max_tokens=64, messages=[QUESTION], tools=tools, tool_choice=choice) as stream:
            first = stream.get_final_message()
        call: Any = next(block for block in first.content if block.type == "tool_use")
        assert call.input["city"] in ("Rome", "Oslo") and first.stop_reason == "tool_use"
        result: Any = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
        messages: Any = [QUESTION, {"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        usage = client.messages.create(model="m", max_tokens=4, messages=messages, tools=tools).usage
        counted = client.messages.count_tokens(model="m", messages=messages, tools=tools).input_tokens
    assert usage.cache_read_input_tokens and usage.input_tokens + usage.cache_read_input_tokens == counted
    assert usage.output_tokens > 0


def test_no_turn_took_a_second_request(server: Server) -> None:
    """The log of all that the tests above sent."""
    lines = [line.split(" ")[2:5] for line in server.log.splitlines() if " POST /v1/" in line]
    found = [f"{path} {status}" for _, path, status in lines]
    counted = ["/v1/messages/count_tokens 200"]
    assert found == ["/v1/chat/completions 200"] * 2 + ["/v1/responses 200"] * 2 + ["/v1/messages 200"] * 2 + counted
