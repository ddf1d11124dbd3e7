"""Libraries that cannot share an environment with those of `tests/clients`."""

from __future__ import annotations

import textwrap

from tools.clients.client import CHAT, RESPONSES, Client, Run

INSTRUCTOR = """
    import instructor, pydantic
    City = pydantic.create_model("City", city=(str, ...), degrees=(int, ...))
    for mode, scene in (("TOOLS", "city call"), ("JSON", "city"), ("JSON_SCHEMA", "city"), ("RESPONSES_TOOLS", "city call")):
        client = instructor.from_provider("openai/m", mode=getattr(instructor.Mode, mode), max_retries=0)
        got = client.create(messages=[{"role": "user", "content": "play: " + scene}], response_model=City, max_retries=0)
        assert (got.city, got.degrees) == ("Rome", 21), (mode, got)
"""
LLAMA_INDEX = """
    import os
    from llama_index.core.llms import ChatMessage
    from llama_index.core.tools import FunctionTool
    from llama_index.embeddings.openai_like import OpenAILikeEmbedding
    from llama_index.llms.openai_like import OpenAILike
    base = os.environ["OPENAI_BASE_URL"]
    more = dict(model="m", api_base=base, api_key="x", is_chat_model=True, is_function_calling_model=True, max_retries=0)
    llm = OpenAILike(**more)
    assert llm.complete("play: plain").text == "Hello world"
    assert "".join(part.delta or "" for part in llm.stream_chat([ChatMessage(content="play: plain")])) == "Hello world"
    def weather(city: str) -> str:
        "Tells the weather."
        return "sunny"
    reply = llm.chat_with_tools([FunctionTool.from_defaults(weather)], user_msg="play: two calls", allow_parallel_tool_calls=True)
    assert [one.tool_kwargs["city"] for one in llm.get_tool_calls_from_response(reply)] == ["Rome", "Oslo"]
    embed = OpenAILikeEmbedding(model_name="m", api_base=base, api_key="x")
    assert len(embed.get_text_embedding("a")) == 4
"""


def _instructor(run: Run) -> None:
    with run.live.turns(CHAT, CHAT, CHAT, RESPONSES):
        run.python(textwrap.dedent(INSTRUCTOR))


def _llama_index(run: Run) -> None:
    with run.live.turns(CHAT, CHAT, CHAT, "POST /v1/embeddings 200"):
        run.python(textwrap.dedent(LLAMA_INDEX))


LIBRARIES = (
    Client("instructor", ("instructor==1.17.0",), _instructor),
    Client("llama-index", ("llama-index-llms-openai-like==0.8.1", "llama-index-embeddings-openai-like==0.4.0"), _llama_index),
)
