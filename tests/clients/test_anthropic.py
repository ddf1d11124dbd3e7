"""Anthropic's own package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import pydantic
import pytest

from tests.clients.live import Live, wait_until
from tests.clients.scenes import Stage

PATH = "POST /v1/messages"
TOOLS: Any = [
    {"name": "weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
]


class City(pydantic.BaseModel):
    city: str
    degrees: int


@pytest.fixture(scope="module")
def client(live: Live) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=live.root, api_key="x") as one:
        yield one


def ask(scene: str, **more: Any) -> Any:
    return {"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": f"play: {scene}"}], **more}


@pytest.mark.parametrize(
    "scene, kinds, reason",
    [
        ("plain", ["text"], "end_turn"),
        ("think", ["thinking", "text"], "end_turn"),
        ("one call", ["text", "tool_use"], "tool_use"),
        ("two calls", ["tool_use", "tool_use"], "tool_use"),
        ("cut", ["text"], "max_tokens"),
    ],
)
def test_messages(live: Live, client: anthropic.Anthropic, scene: str, kinds: list[str], reason: str) -> None:
    with live.turns(f"{PATH} 200", f"{PATH} 200"):
        with client.messages.stream(**ask(scene, tools=TOOLS)) as stream:
            streamed = stream.get_final_message()
        whole = client.messages.create(**ask(scene, tools=TOOLS))
    assert [block.type for block in streamed.content] == [block.type for block in whole.content] == kinds
    assert streamed.stop_reason == whole.stop_reason == reason and streamed.usage == whole.usage
    bare = [[block.model_dump(exclude={"id", "parsed_output"}) for block in one.content] for one in (streamed, whole)]
    assert bare[0] == bare[1]
    called = [block.input for block in streamed.content if block.type == "tool_use"]
    assert called == [{"city": city} for city in ("Rome", "Oslo")[: len(called)]]


def test_it_calls_then_answers(live: Live, client: anthropic.Anthropic) -> None:
    asked = ask("call then answer", tools=TOOLS, tool_choice={"type": "tool", "name": "weather"})
    with live.turns(f"{PATH} 200", f"{PATH} 200"):
        first = client.messages.create(**asked)
        (call,) = first.content
        assert call.type == "tool_use"
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": [{"type": "text", "text": "sunny"}]}]
        turns = [*asked["messages"], {"role": "assistant", "content": first.content}, {"role": "user", "content": results}]
        second = client.messages.create(**{**asked, "messages": turns, "tool_choice": {"type": "auto"}})
    assert second.content[0].type == "text" and second.content[0].text == "It is sunny in Rome."


def test_it_parses(live: Live, client: anthropic.Anthropic, stage: Stage) -> None:
    with live.turns(f"{PATH} 200"):
        reply = client.messages.parse(**ask("city"), output_format=City)
    assert reply.parsed_output == City(city="Rome", degrees=21) and stage.last.constraint is not None


@pytest.mark.parametrize("stream", [False, True])
def test_what_does_not_fit_is_refused_once(live: Live, client: anthropic.Anthropic, stream: bool) -> None:
    with live.turns(f"{PATH} 400"), pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: 99999 tokens > \d+"):
        client.messages.create(**ask("overflow"), stream=stream)


def test_a_failure_in_the_middle_is_told(live: Live, client: anthropic.Anthropic) -> None:
    with live.turns(f"{PATH} 200", to_end=False), pytest.raises(anthropic.APIStatusError, match="the engine broke"):
        list(client.messages.create(**ask("fail"), stream=True))


def test_who_leaves_ends_it(live: Live, client: anthropic.Anthropic, stage: Stage) -> None:
    with live.turns(f"{PATH} 200, client gone"):
        with client.messages.stream(**ask("long")) as stream:
            next(iter(stream.text_stream))
        wait_until(lambda: stage.scenes["long"][-1].closed, "the answer goes on")
    assert not stage.scenes["long"][-1].finished


def test_counting_and_models(live: Live, client: anthropic.Anthropic, stage: Stage) -> None:
    asked = ask("plain")
    with live.turns(f"{PATH}/count_tokens 200", f"{PATH} 200", "GET /v1/models 200"):
        counted = client.messages.count_tokens(model="m", messages=asked["messages"])
        usage = client.messages.create(**asked).usage
        (model,) = client.models.list()
    assert counted.input_tokens == usage.input_tokens + (usage.cache_read_input_tokens or 0) == len(stage.last.prompt)
    assert model.id == "tiny-test" and model.type == "model" and model.display_name and model.created_at
