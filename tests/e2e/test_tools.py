"""Tools on real servers: what must be called is called, with arguments of the schema; what random models say ends nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest
from jsonschema import Draft202012Validator

from tests.chat_turns import TEMPLATE, join
from tests.e2e.server import Server
from tests.e2e.sse import DONE

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 12},
        "unit": {"enum": ["celsius", "fahrenheit"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
        "at": {"type": "object", "properties": {"x": {"type": "number"}}, "additionalProperties": False},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
ITEMS: dict[str, Any] = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"enum": ["a", "b", '"quoted" {', "漢字"]}, "minItems": 1, "maxItems": 3}},
    "required": ["items"],
    "additionalProperties": False,
}
SCHEMAS: dict[str, dict[str, Any]] = {"get_weather": WEATHER, "list.items": ITEMS, "now": {}}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in SCHEMAS.items()]
MESSAGES = [{"role": "user", "content": "What is the weather in Paris?"}]
HOT = {"temperature": 1.5, "top_k": 0, "top_p": 1, "min_p": 0}


def ordered(value: object) -> str:
    """A test's name for a value: processes that share the tests have to call them the same."""
    return "{" + ", ".join(sorted(map(repr, value))) + "}" if isinstance(value, set) else str(value)


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def check(message: Any, names: set[str], *, most: int = 99, whole: bool = True) -> None:
    """Valid calls of these tools, at least one."""
    assert message.tool_calls and len(message.tool_calls) <= most
    assert len({call.id for call in message.tool_calls}) == len(message.tool_calls)
    for call in message.tool_calls[: None if whole else -1]:
        assert call.function.name in names
        Draft202012Validator(SCHEMAS[call.function.name]).validate(json.loads(call.function.arguments))


@pytest.fixture(scope="module")
def server(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A random model behind a template with thoughts and tools."""
    folder = tmp_path_factory.mktemp("tools")
    template = folder / "template.jinja"
    opening = "<|im_start|>assistant\n{% if open %}<think>\n{% endif %}"
    template.write_text(TEMPLATE.replace("<|im_start|>assistant\n", opening))
    with Server(
        tiny_llama, "-c", "2048", "-np", "8", "-t", "1", "--chat-template-file", str(template), log=folder / "log"
    ) as running:
        yield running
        running.stop()


def client(server: Server) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


CHOICES: list[tuple[Any, set[str]]] = [
    ("required", set(SCHEMAS)),
    *((named(name), {name}) for name in SCHEMAS),
    ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": TOOLS[:2]}}, {"get_weather", "list.items"}),
]


@pytest.mark.parametrize("choice, names", CHOICES, ids=ordered)
def test_what_must_be_called_is_called(server: Server, choice: Any, names: set[str]) -> None:
    sdk = client(server)
    for seed in range(3):
        asked: dict[str, Any] = {"model": "m", "messages": MESSAGES, "tools": TOOLS, "tool_choice": choice, "seed": seed}
        more = {**HOT, "parallel_tool_calls": False, "reasoning_budget_tokens": 8}
        reply = sdk.chat.completions.create(**asked, extra_body=more, max_tokens=400)
        assert reply.choices[0].finish_reason == "tool_calls", reply
        check(reply.choices[0].message, names, most=1)
        with sdk.chat.completions.stream(**asked, extra_body=more, max_tokens=400) as stream:
            final = stream.get_final_completion()
        check(final.choices[0].message, names, most=1)


def test_a_random_models_answer_is_strict_beside_thoughts_and_tools(server: Server) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer", "maximum": 99, "minimum": 0}},
        "required": ["a"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema, "strict": True}}
    seen = set()
    for seed in range(12):
        body = {"messages": MESSAGES, "tools": TOOLS, "response_format": form, "seed": seed, "reasoning_budget_tokens": 5, **HOT}
        choice = server.post("/v1/chat/completions", {**body, "max_tokens": 400}).json()["choices"][0]
        if choice["finish_reason"] == "stop":
            Draft202012Validator(schema).validate(json.loads(choice["message"]["content"]))
        seen.add(choice["finish_reason"])
    assert "stop" in seen or "tool_calls" in seen


def test_a_budget_of_reasoning_holds(server: Server) -> None:
    """The answer that is asked for cannot hold tags, so what is thought is what comes before the end that was forced."""
    for message in ("", "That will do."):
        body = {"messages": MESSAGES, "reasoning_budget_tokens": 10, "reasoning_budget_message": message, "choice": ["yes"]}
        body |= {"chat_template_kwargs": {"open": True}, "max_tokens": 80, "logprobs": True, **HOT}
        reply = server.json("/v1/chat/completions", body)
        choice = reply["choices"][0]
        assert choice["message"]["content"] == "yes" and choice["finish_reason"] == "stop"
        assert choice["message"]["reasoning_content"].endswith(message)
        raw = [entry["token"] for entry in choice["logprobs"]["content"]]
        assert "</think>" not in "".join(raw[:10]) and "</think>" in "".join(raw), raw
        assert 10 <= reply["usage"]["completion_tokens_details"]["reasoning_tokens"] < len(raw)


def test_reasoning_can_be_ended_from_outside(server: Server) -> None:
    body = {"messages": MESSAGES, "choice": ["yes"], "chat_template_kwargs": {"open": True}, **HOT}
    with server.stream("/v1/chat/completions", body) as frames:
        first = next(frames)
        reply = server.json("/v1/chat/completions/control", {"id": first["id"], "action": "reasoning_end"})
        assert reply == {"success": True}
        *rest, last = [first, *frames]
    assert last is DONE
    message = join(rest)
    assert message["content"] == "yes" and message["reasoning_content"] and message["finish_reason"] == "stop"
    again = server.json("/v1/chat/completions/control", {"id": first["id"], "action": "reasoning_end"})
    assert again["success"] is False


def random_request(chance: random.Random) -> dict[str, Any]:
    """Anything that clients send about tools and reasoning, in any combination."""
    body: dict[str, Any] = {
        "messages": MESSAGES,
        "max_tokens": chance.choice([1, 8, 30, 60]),
        "seed": chance.randrange(1000),
        **HOT,
    }
    tools = chance.sample(TOOLS, chance.randrange(1, 4))
    body["tools"] = tools
    body["tool_choice"] = chance.choice(["auto", "required", "none", named(tools[0]["function"]["name"])])  # type: ignore[index]  # a function
    body["stream"] = chance.random() < 0.5
    body["parallel_tool_calls"] = chance.random() < 0.5
    if chance.random() < 0.3:
        body["reasoning_budget_tokens"] = chance.randrange(6)
        body["reasoning_budget_message"] = chance.choice(["", "So: "])
    if chance.random() < 0.3:
        body["reasoning_format"] = chance.choice(["none", "deepseek", "deepseek-legacy"])
    if chance.random() < 0.2:
        body["response_format"] = {"type": "json_object"}
    if chance.random() < 0.2:
        body.update(logprobs=True, top_logprobs=2)
    if chance.random() < 0.2:
        body["n"] = 2
    if chance.random() < 0.2:
        body["stop"] = [chance.choice(["e", "</tool_call>", "{", "\n"])]
    return body


def test_two_hundred_random_requests_end_nothing(server: Server) -> None:
    chance = random.Random(5)
    bodies = [random_request(chance) for _ in range(200)]

    def ask(body: dict[str, Any]) -> None:
        if body["stream"]:
            frames = server.frames("/v1/chat/completions", body)[:-1]
            messages = [join(frames, index) for index in range(body.get("n", 1))]
        else:
            reply = server.post("/v1/chat/completions", body)
            assert reply.status_code == 200, (body, reply.text)
            messages = [{**one["message"], "finish_reason": one["finish_reason"]} for one in reply.json()["choices"]]
        known = {tool["function"]["name"] for tool in body["tools"]}
        for message in messages:
            calls = message.get("tool_calls", [])
            assert {call["function"]["name"] for call in calls} <= known
            assert body["tool_choice"] != "none" or not calls
            if message["finish_reason"] == "tool_calls":
                assert calls and all(isinstance(json.loads(call["function"]["arguments"]), dict) for call in calls)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, bodies))
    assert server.worker_pids() == [server.first_worker]


@pytest.fixture(scope="module")
def embedded(embedded_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("embedded") / "log"
    with Server(embedded_model, "-c", "2048", "-np", "4", log=log) as running:
        yield running
        running.stop()


@pytest.mark.model
@pytest.mark.parametrize("choice, names", CHOICES[:3], ids=ordered)
def test_the_embedded_model_calls_what_it_must(embedded: Server, choice: Any, names: set[str]) -> None:
    """Its template knows nothing of tools."""
    sdk = client(embedded)
    asked: dict[str, Any] = {"model": "m", "messages": MESSAGES, "tools": TOOLS, "tool_choice": choice, "max_tokens": 200}
    reply = sdk.chat.completions.create(**asked, temperature=0, parallel_tool_calls=False)
    assert reply.choices[0].finish_reason == "tool_calls"
    check(reply.choices[0].message, names, most=1)
    with sdk.chat.completions.stream(**asked, temperature=0, parallel_tool_calls=False) as stream:
        check(stream.get_final_completion().choices[0].message, names, most=1)


@pytest.mark.model
def test_the_embedded_model_still_answers_beside_tools(embedded: Server) -> None:
    messages = [{"role": "user", "content": "What is the capital of France? Answer with one word."}]
    body = {"messages": messages, "tools": TOOLS, "tool_choice": "none", "temperature": 0, "max_tokens": 24}
    reply = embedded.json("/v1/chat/completions", body)
    assert "Paris" in reply["choices"][0]["message"]["content"]
