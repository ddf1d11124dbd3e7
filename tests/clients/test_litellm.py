"""litellm: OpenAI's routes, Anthropic's, embeddings and ranking."""

from __future__ import annotations

import json
from typing import Any

import pydantic
import pytest

from tests.clients.live import Live, need, wait_until
from tests.clients.scenes import Stage

CHAT = "POST /v1/chat/completions"
TOOLS = [
    {
        "type": "function",
        "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
    }
]
PATHS = {"openai": CHAT, "anthropic": "POST /v1/messages"}


class City(pydantic.BaseModel):
    city: str
    degrees: int


@pytest.fixture(params=PATHS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def completion(live: Live, way: str, scene: str, messages: Any = None, **more: Any) -> Any:
    return need("litellm").completion(
        model=f"{way}/m",
        api_base=live.url if way == "openai" else live.root,
        api_key="x",
        messages=messages or [{"role": "user", "content": f"play: {scene}"}],
        **more,
    )


def test_plain_and_streamed(live: Live, way: str) -> None:
    with live.turns(f"{PATHS[way]} 200", f"{PATHS[way]} 200"):
        whole = completion(live, way, "plain")
        deltas = [chunk.choices[0].delta for chunk in completion(live, way, "think", stream=True) if chunk.choices]
    assert whole.choices[0].message.content == "Hello world" and whole.usage.prompt_tokens > 0
    assert "".join(delta.content or "" for delta in deltas).strip() == "Done."
    assert "let me see" in "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)


@pytest.mark.parametrize("scene, cities", [("call then answer", ["Rome"]), ("two calls", ["Rome", "Oslo"])])
def test_it_calls_then_answers(live: Live, way: str, scene: str, cities: list[str]) -> None:
    asked = [{"role": "user", "content": f"play: {scene}"}]
    with live.turns(f"{PATHS[way]} 200", f"{PATHS[way]} 200"):
        message = completion(live, way, scene, tools=TOOLS).choices[0].message
        results = [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in message.tool_calls]
        second = completion(live, way, scene, [*asked, message.model_dump(), *results], tools=TOOLS)
    assert [json.loads(call.function.arguments)["city"] for call in message.tool_calls] == cities
    assert second.choices[0].message.content == "It is sunny in Rome."


def test_calls_in_a_stream(live: Live, way: str) -> None:
    with live.turns(f"{PATHS[way]} 200"):
        chunks = list(completion(live, way, "two calls", tools=TOOLS, stream=True))
    whole = need("litellm").stream_chunk_builder(chunks)
    assert [json.loads(call.function.arguments)["city"] for call in whole.choices[0].message.tool_calls] == ["Rome", "Oslo"]
    assert whole.choices[0].finish_reason == "tool_calls"


def test_structured(live: Live, stage: Stage) -> None:
    with live.turns(f"{CHAT} 200"):
        reply = completion(live, "openai", "city", response_format=City)
    assert City.model_validate_json(reply.choices[0].message.content).degrees == 21 and stage.last.constraint is not None


def test_overflow_and_failure(live: Live, way: str) -> None:
    errors = need("litellm.exceptions")
    with live.turns(f"{PATHS[way]} 400"), pytest.raises(errors.ContextWindowExceededError):
        completion(live, way, "overflow", num_retries=0)
    with live.turns(f"{PATHS[way]} 200", to_end=False), pytest.raises(Exception, match="the engine broke"):
        list(completion(live, way, "fail", stream=True))


def test_who_leaves_ends_it(live: Live, stage: Stage) -> None:
    with live.turns(f"{CHAT} 200, client gone"):
        stream = completion(live, "openai", "long", stream=True)
        next(iter(stream))
        stream.completion_stream.close()
        wait_until(lambda: stage.scenes["long"][-1].closed, "the answer goes on")


def test_responses_and_embeddings(live: Live) -> None:
    litellm = need("litellm")
    with live.turns("POST /v1/responses 200", "POST /v1/embeddings 200"):
        reply = litellm.responses(model="openai/m", api_base=live.url, api_key="x", input="play: plain")
        vectors = litellm.embedding(model="openai/m", api_base=live.url, api_key="x", input=["a", "bb"])
    assert reply.output[0].content[0].text == "Hello world"
    assert [len(one["embedding"]) for one in vectors.data] == [4, 4]


@pytest.mark.parametrize("way, path", [("cohere", "/v2/rerank"), ("jina_ai", "/v1/rerank")])
def test_ranking(ranking: Live, way: str, path: str) -> None:
    base = ranking.root if way == "cohere" else ranking.root + path
    with ranking.turns(f"POST {path} 200"):
        reply = need("litellm").rerank(
            model=f"{way}/m", api_base=base, api_key="x", query="q", documents=["a", "c", "b"], top_n=2, return_documents=True
        )
    assert [one["index"] for one in reply.results] == [1, 2] and reply.results[0]["document"]["text"] == "c"
