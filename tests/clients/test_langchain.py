"""langchain-openai, over chat and responses, and its embeddings."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from tests.clients.live import Live, need, wait_until
from tests.clients.scenes import Stage

PATHS = {"chat": "POST /v1/chat/completions", "responses": "POST /v1/responses"}


class City(pydantic.BaseModel):
    """A city."""

    city: str
    degrees: int


class weather(pydantic.BaseModel):
    """Tells the weather."""

    city: str


@pytest.fixture(params=PATHS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def model(live: Live, way: str) -> Any:
    package = need("langchain_openai")
    return package.ChatOpenAI(model="m", base_url=live.url, api_key="x", stream_usage=True, use_responses_api=way == "responses")


def test_plain_and_streamed(live: Live, way: str) -> None:
    one = model(live, way)
    with live.turns(f"{PATHS[way]} 200", f"{PATHS[way]} 200"):
        whole = one.invoke("play: plain")
        chunks = list(one.stream("play: think"))
    assert whole.text == "Hello world" and whole.usage_metadata["input_tokens"] > 0
    assert "".join(chunk.text for chunk in chunks).strip() == "Done."
    assert [chunk.usage_metadata["output_tokens"] for chunk in chunks if chunk.usage_metadata][-1] > 0


@pytest.mark.parametrize("scene, cities", [("call then answer", ["Rome"]), ("two calls", ["Rome", "Oslo"])])
@pytest.mark.parametrize("stream", [False, True])
def test_it_calls_then_answers(live: Live, way: str, scene: str, cities: list[str], stream: bool) -> None:
    messages = need("langchain_core.messages")
    one = model(live, way).bind_tools([weather])
    asked = messages.HumanMessage(f"play: {scene}")
    with live.turns(f"{PATHS[way]} 200", f"{PATHS[way]} 200"):
        if stream:
            first, *rest = one.stream([asked])
            for chunk in rest:
                first += chunk
        else:
            first = one.invoke([asked])
        results = [messages.ToolMessage("sunny", tool_call_id=call["id"]) for call in first.tool_calls]
        second = one.invoke([asked, first, *results])
    assert [call["args"]["city"] for call in first.tool_calls] == cities
    assert second.text == "It is sunny in Rome."


@pytest.mark.parametrize("method, scene", [("json_schema", "city"), ("function_calling", "city call"), ("json_mode", "city")])
def test_structured(live: Live, way: str, method: str, scene: str, stage: Stage) -> None:
    with live.turns(f"{PATHS[way]} 200"):
        found = model(live, way).with_structured_output(City, method=method).invoke(f"play: {scene}")
    assert found == City(city="Rome", degrees=21) and stage.last.constraint is not None


def test_overflow_and_failure(live: Live, way: str) -> None:
    with live.turns(f"{PATHS[way]} 400"), pytest.raises(Exception, match="available context size"):
        model(live, way).invoke("play: overflow")
    with live.turns(f"{PATHS[way]} 200", to_end=False), pytest.raises(Exception, match="the engine broke"):
        list(model(live, way).stream("play: fail"))


def test_who_leaves_ends_it(live: Live, way: str, stage: Stage) -> None:
    with live.turns(f"{PATHS[way]} 200, client gone"):
        stream = model(live, way).stream("play: long")
        for chunk in stream:
            if chunk.text:
                break
        stream.close()
        wait_until(lambda: stage.scenes["long"][-1].closed, "the answer goes on")


def test_completions_and_embeddings(live: Live) -> None:
    package = need("langchain_openai")
    with live.turns("POST /v1/completions 200", "POST /v1/embeddings 200"):
        assert package.OpenAI(model="m", base_url=live.url, api_key="x").invoke("play: plain") == "Hello world"
        embeddings = package.OpenAIEmbeddings(model="m", base_url=live.url, api_key="x", check_embedding_ctx_length=False)
        assert [len(vector) for vector in embeddings.embed_documents(["a", "bb"])] == [4, 4]
