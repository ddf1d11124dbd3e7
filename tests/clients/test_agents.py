"""openai-agents, over responses and over chat."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import openai
import pydantic
import pytest

from tests.clients.live import Live, need, wait_until
from tests.clients.scenes import Stage

PATHS = {"responses": "POST /v1/responses", "chat": "POST /v1/chat/completions"}


class City(pydantic.BaseModel):
    city: str
    degrees: int


@pytest.fixture
def agents(live: Live) -> Any:
    module = need("agents")
    module.set_tracing_disabled(True)
    return module


@pytest.fixture(params=PATHS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def agent(live: Live, agents: Any, way: str) -> AsyncIterator[Callable[..., Any]]:
    """Makes agents."""
    kind = agents.OpenAIResponsesModel if way == "responses" else agents.OpenAIChatCompletionsModel
    async with openai.AsyncOpenAI(base_url=live.url, api_key="x") as client:
        yield lambda **more: agents.Agent(name="a", instructions="Be brief.", model=kind("m", client), **more)


async def test_plain_and_streamed(live: Live, agents: Any, agent: Any, way: str) -> None:
    one = agent()
    with live.turns(f"{PATHS[way]} 200", f"{PATHS[way]} 200"):
        assert (await agents.Runner.run(one, "play: plain")).final_output == "Hello world"
        running = agents.Runner.run_streamed(one, "play: think")
        kinds = [event.type async for event in running.stream_events()]
    assert running.final_output == "Done." and "raw_response_event" in kinds


@pytest.mark.parametrize("scene, n", [("call then answer", 1), ("two calls", 2)])
@pytest.mark.parametrize("stream", [False, True])
async def test_it_calls_then_answers(live: Live, agents: Any, agent: Any, way: str, scene: str, n: int, stream: bool) -> None:
    called: list[str] = []

    def weather(city: str) -> str:
        """Tells the weather."""
        called.append(city)
        return "sunny"

    one = agent(tools=[agents.function_tool(weather)])
    with live.turns(f"{PATHS[way]} 200", f"{PATHS[way]} 200"):
        if stream:
            result = agents.Runner.run_streamed(one, f"play: {scene}")
            async for _ in result.stream_events():
                pass
        else:
            result = await agents.Runner.run(one, f"play: {scene}")
    assert result.final_output == "It is sunny in Rome." and sorted(called) == ["Oslo", "Rome"][-n:]


async def test_structured(live: Live, agents: Any, agent: Any, way: str, stage: Stage) -> None:
    with live.turns(f"{PATHS[way]} 200"):
        result = await agents.Runner.run(agent(output_type=City), "play: city")
    assert result.final_output == City(city="Rome", degrees=21) and stage.last.constraint is not None


async def test_overflow_and_failure(live: Live, agents: Any, agent: Any, way: str) -> None:
    one = agent()
    with live.turns(f"{PATHS[way]} 400"), pytest.raises(Exception, match="available context size"):
        await agents.Runner.run(one, "play: overflow")
    with live.turns(f"{PATHS[way]} 200", to_end=False), pytest.raises(Exception, match="the engine broke"):
        running = agents.Runner.run_streamed(one, "play: fail")
        async for _ in running.stream_events():
            pass


async def test_who_leaves_ends_it(live: Live, agents: Any, agent: Any, way: str, stage: Stage) -> None:
    with live.turns(f"{PATHS[way]} 200, client gone"):
        running = agents.Runner.run_streamed(agent(), "play: long")
        async for event in running.stream_events():
            if event.type == "raw_response_event" and "delta" in event.data.type:
                running.cancel()
        await asyncio.to_thread(wait_until, lambda: stage.scenes["long"][-1].closed, "the answer goes on")
