"""Who names a tool gets one call of it, unless several are asked for; the same in all dialects."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.api.test_anthropic import CALL, engine
from tests.web import client

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SAY = [{"role": "user", "content": "hi"}]
NAMED = {"type": "function", "name": "weather"}


def chat(parallel: bool | None, *, named: bool) -> tuple[str, dict[str, Any]]:
    tool = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}
    choice: Any = {"type": "function", "function": {"name": "weather"}} if named else "required"
    return "/v1/chat/completions", {"messages": SAY, "tools": [tool], "tool_choice": choice, "parallel_tool_calls": parallel}


def responses(parallel: bool | None, *, named: bool) -> tuple[str, dict[str, Any]]:
    tool, choice = {**NAMED, "parameters": SCHEMA}, NAMED if named else "required"
    return "/v1/responses", {"input": "hi", "tools": [tool], "tool_choice": choice, "parallel_tool_calls": parallel}


def messages(parallel: bool | None, *, named: bool) -> tuple[str, dict[str, Any]]:
    choice: dict[str, Any] = {"type": "tool", "name": "weather"} if named else {"type": "any"}
    if parallel is not None:
        choice["disable_parallel_tool_use"] = not parallel
    tool = {"name": "weather", "input_schema": SCHEMA}
    return "/v1/messages", {"max_tokens": 9, "messages": SAY, "tools": [tool], "tool_choice": choice}


@pytest.mark.parametrize("dialect", [chat, responses, messages])
async def test_how_many_calls_there_may_be(dialect: Any) -> None:
    async def grammar(parallel: bool | None, named: bool) -> str:
        one = engine(CALL)
        path, body = dialect(parallel, named=named)
        async with client(one) as web:
            assert (await web.post(path, json=body)).status_code == 200
        assert one.last.constraint is not None
        return one.last.constraint.source

    several, single = await grammar(True, True), await grammar(False, True)
    assert several != single
    assert await grammar(None, named=True) == single
    assert await grammar(None, named=False) == several == await grammar(True, named=False)
