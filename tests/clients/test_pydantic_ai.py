"""pydantic-ai, over chat, responses and messages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import anthropic
import openai
import pydantic
import pytest

from tests.clients.live import Live, need, wait_until
from tests.clients.scenes import Stage

PATHS = {"chat": "POST /v1/chat/completions", "responses": "POST /v1/responses", "messages": "POST /v1/messages"}


class City(pydantic.BaseModel):
    city: str
    degrees: int


@pytest.fixture(params=PATHS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def agent(live: Live, way: str) -> AsyncIterator[Callable[..., Any]]:
    """Makes agents."""
    package = need("pydantic_ai")
    async with AsyncExitStack() as stack:
        if way == "messages":
            client: Any = await stack.enter_async_context(anthropic.AsyncAnthropic(base_url=live.root, api_key="x"))
            provider = need("pydantic_ai.providers.anthropic").AnthropicProvider(anthropic_client=client)
            model = need("pydantic_ai.models.anthropic").AnthropicModel("m", provider=provider)
        else:
            client = await stack.enter_async_context(openai.AsyncOpenAI(base_url=live.url, api_key="x"))
            provider = need("pydantic_ai.providers.openai").OpenAIProvider(openai_client=client)
            models = need("pydantic_ai.models.openai")
            model = (models.OpenAIChatModel if way == "chat" else models.OpenAIResponsesModel)("m", provider=provider)
        yield lambda **more: package.Agent(model, **more)


async def test_plain_and_streamed(live: Live, agent: Any, way: str) -> None:
    one = agent(instructions="Be brief.")
    with live.turns(f"{PATHS[way]} 200", f"{PATHS[way]} 200"):
        result = await one.run("play: plain")
        async with one.run_stream("play: think") as stream:
            pieces = [piece async for piece in stream.stream_text(delta=True, debounce_by=None)]
    assert result.output == "Hello world" and result.usage.input_tokens > 0
    assert "".join(pieces).strip() == "Done."


@pytest.mark.parametrize("scene, n", [("call then answer", 1), ("two calls", 2)])
async def test_it_calls_then_answers(live: Live, agent: Any, way: str, scene: str, n: int) -> None:
    called: list[str] = []

    def weather(city: str) -> str:
        """Tells the weather."""
        called.append(city)
        return "sunny"

    one = agent(tools=[weather])
    with live.turns(f"{PATHS[way]} 200", f"{PATHS[way]} 200"):
        result = await one.run(f"play: {scene}")
    assert result.output == "It is sunny in Rome." and sorted(called) == ["Oslo", "Rome"][-n:]


@pytest.mark.parametrize(
    "way", ["chat", "responses"], indirect=True
)  # of Anthropic's models it knows the names of those that can
async def test_structured(live: Live, agent: Any, way: str, stage: Stage) -> None:
    native = need("pydantic_ai").NativeOutput(City)
    with live.turns(f"{PATHS[way]} 200"):
        result = await agent(output_type=native).run("play: city")
    assert result.output == City(city="Rome", degrees=21) and stage.last.constraint is not None


async def test_structured_by_a_tool(live: Live, agent: Any, way: str, stage: Stage) -> None:
    with live.turns(f"{PATHS[way]} 200"):
        result = await agent(output_type=City).run("play: final result")
    assert result.output == City(city="Rome", degrees=21)
    assert stage.last.constraint is not None


async def test_overflow_and_failure(live: Live, agent: Any, way: str) -> None:
    one = agent()
    with live.turns(f"{PATHS[way]} 400"), pytest.raises(Exception, match=r"context size|prompt is too long"):
        await one.run("play: overflow")
    with live.turns(f"{PATHS[way]} 200", to_end=False), pytest.raises(Exception, match="the engine broke"):
        async with one.run_stream("play: fail") as stream:
            async for _ in stream.stream_text(delta=True, debounce_by=None):
                pass


async def test_who_leaves_ends_it(live: Live, agent: Any, way: str, stage: Stage) -> None:
    with live.turns(f"{PATHS[way]} 200, client gone"):
        async with agent().run_stream("play: long") as stream:
            async for _ in stream.stream_text(delta=True, debounce_by=None):
                break
            await stream.cancel()
        await asyncio.to_thread(wait_until, lambda: stage.scenes["long"][-1].closed, "the answer goes on")
