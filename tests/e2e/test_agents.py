"""Conversations of coding agents: 6,000 tokens, of which the next turn must find nearly all in the cache.

Between turns agents change more than the end of what they send: a line of billing, where to cache, whether a message is a
text or a list of blocks, reminders, ids; and they ask short questions of another kind in between.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests import tiny
from tests.e2e.server import Server
from tests.tiny.vocab import WORDS
from tests.unit.api.test_anthropic import TEMPLATE

N_TOKENS = 6000
SHARE = 0.95
"""How much of a later prompt has to be in the cache."""
EPHEMERAL = {"cache_control": {"type": "ephemeral"}}
COUNTED = ("model", "system", "tools", "messages", "thinking")
MODELS: dict[str, Callable[..., Path]] = {"can be cut": tiny.write_llama, "cannot be cut": tiny.write_jamba}


@pytest.fixture(scope="module", params=MODELS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One that runs one request at a time, so that each has to make room for the next."""
    folder = tmp_path_factory.mktemp("agents")
    vocab = tiny.spm_vocab(extra=("<think>", "</think>"))
    model = MODELS[request.param](folder / "model.gguf", n_ctx_train=8192, chat_template=TEMPLATE, vocab=vocab)
    with Server(model, "-c", "8192", "-np", "1", "-t", "1", log=folder / "log") as server:
        yield server
        server.stop()


def prose(n: int, seed: int) -> str:
    """So many words, one or two tokens each."""
    return " ".join(Random(seed).choices(WORDS, k=n))


def schema(key: str) -> dict[str, Any]:
    return {"type": "object", "properties": {key: {"enum": ["red", "blue"]}}, "required": [key], "additionalProperties": False}


def spent(usage: dict[str, Any]) -> tuple[int, int]:
    """How long the prompt was, and how much of it was in the cache."""
    if "cache_read_input_tokens" in usage:
        cached = usage["cache_read_input_tokens"]
        return usage["input_tokens"] + cached + usage["cache_creation_input_tokens"], cached
    return usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"]


def hold(usage: dict[str, Any], before: int) -> int:
    """Nearly all is cached, and all that was sent before but how the answer was opened; gives the prompt's length."""
    n, cached = spent(usage)
    assert n > before >= N_TOKENS
    assert cached >= SHARE * n and cached >= before - 40, (n, cached, before)
    return n


def messages_body(number: int, messages: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A request as an agent makes it: what stays, and what it changes every time."""
    names = ["read", "write", "list", "find"]
    tools = [{"name": name, "description": prose(40, seed=3), "input_schema": schema("name")} for name in names]
    return {
        "model": "m",
        "max_tokens": 32000,
        "temperature": 0,
        "system": [
            {"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1.{number}; cch={number * 7919:x};"},
            {"type": "text", "text": "You are an agent.", **EPHEMERAL},
            {"type": "text", "text": prose(1500, seed=1), **({} if number % 2 else EPHEMERAL)},
        ],
        "tools": [*tools[:-1], {**tools[-1], **(EPHEMERAL if number % 2 else {})}],
        "messages": messages,
        "metadata": {"user_id": json.dumps({"session": number})},
        "thinking": {"type": "disabled"},
        "context_management": {"edits": []},
        **more,
    }


def test_messages(server: Server) -> None:
    def ask(number: int, messages: list[dict[str, Any]], **more: Any) -> Any:
        body = messages_body(number, messages, **more)
        counted = server.json(
            "/v1/messages/count_tokens", {key: body[key] for key in ("model", "system", "tools", "messages", "thinking")}
        )
        reply = server.json("/v1/messages", body)
        assert spent(reply["usage"])[0] == counted["input_tokens"]
        return reply

    def between() -> None:
        aside = {"system": "Name this.", "messages": [{"role": "user", "content": prose(60, seed=9)}]}
        server.json("/v1/messages", {"model": "m", "max_tokens": 4, **aside})

    reminder = "<system-reminder>\nThe date is 2026-11-30.\n</system-reminder>"
    asked = prose(3500, seed=2)
    call = {"tool_choice": {"type": "tool", "name": "read"}}
    first = ask(
        1,
        [
            {"role": "user", "content": [{"type": "text", "text": reminder}, {"type": "text", "text": asked, **EPHEMERAL}]},
            {"role": "system", "content": [{"type": "text", "text": "Skills: none."}]},
        ],
        **call,
    )
    n = spent(first["usage"])[0]
    (used,) = first["content"]
    between()

    # What was a block with a mark is one without; a list of one block is a text.
    turns: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": reminder}, {"type": "text", "text": asked}]},
        {"role": "system", "content": "Skills: none."},
    ]
    result = {"type": "tool_result", "tool_use_id": used["id"], "content": [{"type": "text", "text": prose(60, seed=4)}]}
    said = [{"type": "thinking", "thinking": "", "signature": ""}, used]
    second = ask(
        2, [*turns, {"role": "assistant", "content": said}, {"role": "user", "content": [{**result, **EPHEMERAL}]}], **call
    )
    n = hold(second["usage"], n)
    between()

    turns += [{"role": "assistant", "content": said}, {"role": "user", "content": [result]}]
    turns += [{"role": "assistant", "content": second["content"]}]
    last = {"type": "tool_result", "tool_use_id": second["content"][0]["id"], "content": "no such file", "is_error": True}
    third = ask(3, [*turns, {"role": "user", "content": [last, {"type": "text", "text": reminder, **EPHEMERAL}]}], max_tokens=4)
    hold(third["usage"], n)


def responses_body(number: int, items: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A request as an agent makes it that keeps its conversation itself."""
    tools: list[dict[str, Any]] = [
        {"type": "function", "name": name, "description": prose(40, seed=3), "strict": False, "parameters": schema("cmd")}
        for name in ("exec", "plan", "view", "wait")
    ]
    return {
        "model": "m",
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": prose(1500, seed=5)}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<cwd>/home</cwd> 2026-11-30"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prose(3500, seed=6)}]},
            *items,
        ],
        "tools": [*tools, {"type": "web_search"}, {"type": "namespace", "name": "more", "tools": [tools[0]]}],
        "store": False,
        "reasoning": {"effort": "none"},
        "include": ["reasoning.encrypted_content"],
        "temperature": 0,
        "parallel_tool_calls": False,
        "prompt_cache_key": "one",
        "client_metadata": {"turn": str(number)},
        **more,
    }


def test_responses(server: Server) -> None:
    call = {"tool_choice": {"type": "function", "name": "exec"}}
    first = server.json("/v1/responses", responses_body(1, [], **call))
    n = spent(first["usage"])[0]
    server.json("/v1/responses", {"input": "Name this: " + prose(60, seed=9), "max_output_tokens": 4})

    def result(reply: Any, output: Any) -> list[dict[str, Any]]:
        """What is said next to a call: it with its result, with and without ids of items."""
        (item,) = (item for item in reply["output"] if item["type"] == "function_call")
        bare = {key: item[key] for key in ("type", "call_id", "name", "arguments")}
        return [bare, {"type": "function_call_output", "id": "fco_1", "call_id": item["call_id"], "output": output}]

    items = result(first, prose(60, seed=7))
    second = server.json("/v1/responses", responses_body(2, items, **call))
    n = hold(second["usage"], n)
    items += result(second, [{"type": "input_text", "text": prose(60, seed=8)}])
    items += [{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "The date is 2026-12-01."}]}]
    third = server.json("/v1/responses", responses_body(3, items, max_output_tokens=4))
    hold(third["usage"], n)

    # The same conversation by reference to what the server keeps of it.
    kept = server.json("/v1/responses", responses_body(4, [], store=True, max_output_tokens=4))
    more = {"input": prose(30, seed=8), "previous_response_id": kept["id"], "max_output_tokens": 4}
    hold(server.json("/v1/responses", responses_body(5, [], **more))["usage"], spent(kept["usage"])[0])
