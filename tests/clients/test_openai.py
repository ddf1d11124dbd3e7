"""OpenAI's own package: chat, completions, responses, embeddings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

import openai
import pydantic
import pytest

from tests.clients.live import Live, wait_until
from tests.clients.scenes import Stage

CHAT, RESPONSES = "POST /v1/chat/completions", "POST /v1/responses"
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOLS: Any = [{"type": "function", "function": {"name": "weather", "parameters": WEATHER, "strict": True}}]
FLAT: Any = [{"type": "function", "name": "weather", "parameters": WEATHER, "strict": True}]


class City(pydantic.BaseModel):
    city: str
    degrees: int


@pytest.fixture(scope="module")
def client(live: Live) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=live.url, api_key="x") as one:
        yield one


def ask(scene: str) -> Any:
    return [{"role": "user", "content": f"play: {scene}"}]


def test_chat(live: Live, client: openai.OpenAI) -> None:
    with live.turns(f"{CHAT} 200"):
        reply = client.chat.completions.create(model="m", messages=ask("plain"))
    assert reply.choices[0].message.content == "Hello world" and reply.choices[0].finish_reason == "stop"
    assert reply.usage is not None and reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


@pytest.mark.parametrize("scene, calls", [("plain", 0), ("think", 0), ("one call", 1), ("two calls", 2)])
def test_chat_streams(live: Live, client: openai.OpenAI, scene: str, calls: int) -> None:
    seen = []
    with live.turns(f"{CHAT} 200", f"{CHAT} 200"):
        with client.chat.completions.stream(
            model="m", messages=ask(scene), tools=TOOLS, stream_options={"include_usage": True}
        ) as stream:
            seen = [event.type for event in stream]
            streamed = stream.get_final_completion()
        whole = client.chat.completions.create(model="m", messages=ask(scene), tools=TOOLS)
    left, right = streamed.choices[0], whole.choices[0]
    assert (left.message.content or None, left.finish_reason) == (right.message.content, right.finish_reason)
    assert left.message.role == "assistant" and streamed.usage == whole.usage and streamed.usage is not None
    assert len(left.message.tool_calls or ()) == len(right.message.tool_calls or ()) == calls
    assert seen.count("tool_calls.function.arguments.done") == calls
    for one, other, city in zip(left.message.tool_calls or (), right.message.tool_calls or (), ("Rome", "Oslo"), strict=False):
        assert one.type == "function" and other.type == "function"
        assert json.loads(one.function.arguments) == json.loads(other.function.arguments) == {"city": city}
        assert one.function.parsed_arguments == {"city": city} and one.id and one.function.name == "weather"


def test_chat_calls_then_answers(live: Live, client: openai.OpenAI) -> None:
    messages = ask("call then answer")
    with live.turns(f"{CHAT} 200", f"{CHAT} 200"):
        first = client.chat.completions.create(model="m", messages=messages, tools=TOOLS, tool_choice="required")
        message: Any = first.choices[0].message
        (call,) = message.tool_calls
        result: Any = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
        second = client.chat.completions.create(model="m", messages=[*messages, message, result], tools=TOOLS)
    assert second.choices[0].message.content == "It is sunny in Rome."


def test_chat_parses(live: Live, client: openai.OpenAI, stage: Stage) -> None:
    with live.turns(f"{CHAT} 200"):
        reply = client.chat.completions.parse(model="m", messages=ask("city"), response_format=City)
    assert reply.choices[0].message.parsed == City(city="Rome", degrees=21)
    assert stage.last.constraint is not None
    with live.turns(f"{CHAT} 200"), pytest.raises(openai.LengthFinishReasonError):
        client.chat.completions.parse(model="m", messages=ask("cut"), response_format=City)


Route = Literal["chat", "completions", "responses"]


def stream_of(client: openai.OpenAI, route: Route, scene: str) -> Any:
    if route == "chat":
        return client.chat.completions.create(model="m", messages=ask(scene), stream=True)
    if route == "completions":
        return client.completions.create(model="m", prompt=f"play: {scene}", stream=True)
    return client.responses.create(model="m", input=f"play: {scene}", stream=True)


PATHS: dict[Route, str] = {"chat": CHAT, "completions": "POST /v1/completions", "responses": RESPONSES}


@pytest.mark.parametrize("route", PATHS)
def test_what_does_not_fit_is_refused_once(live: Live, client: openai.OpenAI, route: Route) -> None:
    with live.turns(f"{PATHS[route]} 400"), pytest.raises(openai.BadRequestError, match="available context size") as failure:
        stream_of(client, route, "overflow")
    if route == "responses":
        assert failure.value.code == "context_length_exceeded"
    else:
        body: Any = failure.value.body
        assert body["type"] == "exceed_context_size_error" and body["n_ctx"] > 0 and body["n_prompt_tokens"] == 99999


@pytest.mark.parametrize("route", PATHS)
def test_a_failure_in_the_middle_is_told(live: Live, client: openai.OpenAI, route: Route) -> None:
    with live.turns(f"{PATHS[route]} 200", to_end=False):
        if route == "responses":
            *_, last = stream_of(client, route, "fail")
            assert last.type == "response.failed" and last.response.error.message == "the engine broke"
        else:
            with pytest.raises(openai.APIError, match="the engine broke"):
                list(stream_of(client, route, "fail"))


@pytest.mark.parametrize("route", PATHS)
def test_who_leaves_ends_it(live: Live, client: openai.OpenAI, stage: Stage, route: Route) -> None:
    with live.turns(f"{PATHS[route]} 200, client gone"):
        stream = stream_of(client, route, "long")
        next(iter(stream))
        stream.close()
        wait_until(lambda: stage.scenes["long"][-1].closed, "the answer goes on")
    assert not stage.scenes["long"][-1].finished


def test_completions(live: Live, client: openai.OpenAI) -> None:
    with live.turns("POST /v1/completions 200", "POST /v1/completions 200"):
        whole = client.completions.create(model="m", prompt=["play: plain"], stop=["\nuser:"])
        streamed = "".join(chunk.choices[0].text for chunk in stream_of(client, "completions", "plain") if chunk.choices)
    assert whole.choices[0].text == streamed == "Hello world"


@pytest.mark.parametrize("scene, calls", [("plain", 0), ("think", 0), ("one call", 1), ("two calls", 2)])
def test_responses(live: Live, client: openai.OpenAI, scene: str, calls: int) -> None:
    with live.turns(f"{RESPONSES} 200", f"{RESPONSES} 200"):
        with client.responses.stream(model="m", input=f"play: {scene}", tools=FLAT) as stream:
            streamed = stream.get_final_response()
        whole = client.responses.create(model="m", input=f"play: {scene}", tools=FLAT)
    assert streamed.output_text == whole.output_text and streamed.usage == whole.usage
    assert [item.type for item in streamed.output] == [item.type for item in whole.output]
    called = [item.arguments for item in streamed.output if item.type == "function_call"]
    assert [json.loads(arguments)["city"] for arguments in called] == ["Rome", "Oslo"][:calls]


def test_responses_call_then_answer_by_reference_and_by_value(live: Live, client: openai.OpenAI) -> None:
    asked = "play: call then answer"
    with live.turns(*[f"{RESPONSES} 200"] * 3):
        first = client.responses.create(model="m", input=asked, tools=FLAT)
        (call,) = first.output
        assert call.type == "function_call"
        result: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
        second = client.responses.create(model="m", input=[result], tools=FLAT, previous_response_id=first.id)
        items: Any = [{"role": "user", "content": asked}, *first.output, result]
        third = client.responses.create(model="m", input=items, tools=FLAT)
    assert second.output_text == third.output_text == "It is sunny in Rome."


def test_responses_are_parsed_kept_counted_and_deleted(live: Live, client: openai.OpenAI) -> None:
    path = "/v1/responses/ID"
    kept = (f"GET {path} 200", f"DELETE {path} 200", f"GET {path} 404")
    with live.turns(f"{RESPONSES} 200", f"{RESPONSES}/input_tokens 200", *kept):
        reply = client.responses.parse(model="m", input="play: city", text_format=City)
        assert reply.output_parsed == City(city="Rome", degrees=21)
        assert client.responses.input_tokens.count(model="m", input="play: city").input_tokens > 0
        assert client.responses.retrieve(reply.id).output_text == reply.output_text
        client.responses.delete(reply.id)
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(reply.id)


def test_an_answer_that_is_cut(live: Live, client: openai.OpenAI) -> None:
    with live.turns(f"{RESPONSES} 200"):
        reply = client.responses.create(model="m", input="play: cut", max_output_tokens=5)
    assert reply.status == "incomplete" and reply.incomplete_details is not None
    assert reply.incomplete_details.reason == "max_output_tokens"


def test_embeddings_and_models(live: Live, client: openai.OpenAI) -> None:
    with live.turns("POST /v1/embeddings 200", "POST /v1/embeddings 200", "GET /v1/models 200"):
        packed = client.embeddings.create(model="m", input=["a", "bb"])
        plain = client.embeddings.create(model="m", input=["a", "bb"], encoding_format="float")
        assert [one.id for one in client.models.list()] == ["tiny-test"]
    assert [len(one.embedding) for one in packed.data] == [4, 4] and [one.index for one in packed.data] == [0, 1]
    for one, other in zip(packed.data, plain.data, strict=True):
        assert one.embedding == pytest.approx(other.embedding, abs=1e-6)


async def test_the_asynchronous_client(live: Live) -> None:
    with live.turns(f"{CHAT} 200", f"{RESPONSES} 200"):
        async with openai.AsyncOpenAI(base_url=live.url, api_key="x") as client:
            stream = await client.chat.completions.create(model="m", messages=ask("plain"), stream=True)
            text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])
            async with client.responses.stream(model="m", input="play: plain") as responses:
                final = await responses.get_final_response()
    assert text == final.output_text == "Hello world"
