"""Random models over the vocabularies of real ones, with templates of real families: what must be called is called."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from tests.chat_turns import join
from tests.engine.local import LocalEngine, local_client
from tests.tiny.real import write_over
from tests.unit.chat.helpers import FOLDER
from tests.web import objects

SCHEMAS: dict[str, dict[str, Any]] = {
    "get_weather": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 8},
            "days": {"type": "integer", "minimum": -3, "maximum": 9},
            "at": {"type": "object", "properties": {"here": {"type": "boolean"}}, "additionalProperties": False},
        },
        "required": ["city", "days"],
        "additionalProperties": False,
    },
    "list.items": {
        "type": "object",
        "properties": {
            "items": {"type": "array", "items": {"enum": ["a", '"quoted" {', "▁漢 <x>"]}, "minItems": 1, "maxItems": 2}
        },
        "required": ["items"],
        "additionalProperties": False,
    },
    "now": {"type": "object", "properties": {}, "additionalProperties": False},
}
ASKED: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
    "tools": [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in SCHEMAS.items()],
    "parallel_tool_calls": False,
    "reasoning_budget_tokens": 6,
    "max_tokens": 400,
    "temperature": 1.5,
    "top_k": 0,
    "top_p": 1,
    "min_p": 0,
}

TEMPLATES = {
    "deepseek-coder": ("deepseek-ai-DeepSeek-V3.2", "deepseek-ai-DeepSeek-V4", "MiniMax-M3"),
    "gemma-4": ("google-gemma-4-31B-it",),
    "gpt-2": ("GLM-4.6", "Kimi-K2-Instruct", "MiniMax-M2"),
    "llama-bpe": (
        "meta-llama-Llama-3.1-8B-Instruct",
        "meetkai-functionary-medium-v3.1",
        "meetkai-functionary-medium-v3.2",
        "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
        "NousResearch-Hermes-3-Llama-3.1-8B-tool_use",
    ),
    "llama-spm": ("Mistral-Small-3.2-24B-Instruct-2506", "mistralai-Mistral-Nemo-Instruct-2407", "deepseek-ai-DeepSeek-V3.1"),
    "phi-3": ("microsoft-Phi-3.5-mini-instruct", "openai-gpt-oss-120b"),
    "qwen35": ("Qwen3.5-4B", "Qwen-Qwen3-0.6B", "Qwen-Qwen2.5-7B-Instruct"),
    "starcoder": ("ibm-granite-granite-3.3-2B-Instruct", "CohereForAI-c4ai-command-r7b-12-2024-tool_use", "LFM2-8B-A1B"),
}
"""Those of the vocabulary's own family, and some for which it has no control tokens, or takes one for the end."""


def plain(message: dict[str, Any]) -> tuple[Any, ...]:
    calls = [(call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls") or ()]
    return message.get("content") or "", message.get("reasoning_content") or "", calls, message["finish_reason"]


def check(message: tuple[Any, ...], names: set[str]) -> None:
    content, _, calls, finish = message
    assert (content, finish, len(calls)) == ("", "tool_calls", 1), message
    name, arguments = calls[0]
    assert name in names
    Draft202012Validator(SCHEMAS[name]).validate(json.loads(arguments))


async def ask(http: httpx.AsyncClient, choice: Any, names: set[str], *, stream: bool = False, **more: Any) -> None:
    body = {**ASKED, **more, "tool_choice": choice}
    reply = await http.post("/v1/chat/completions", json=body)
    assert reply.status_code == 200, reply.text
    found = reply.json()["choices"][0]
    message = plain({**found["message"], "finish_reason": found["finish_reason"]})
    check(message, names)
    if stream:
        reply = await http.post("/v1/chat/completions", json={**body, "stream": True})
        assert plain(join(objects(reply.text))) == message


@pytest.mark.parametrize("name", TEMPLATES)
async def test_what_must_be_called_is_called(shared: Path, tmp_path: Path, name: str) -> None:
    vocabulary = FOLDER.parent / "vocab" / f"ggml-vocab-{name}.gguf"
    if not vocabulary.is_file():
        pytest.skip(f"no vocabulary at {vocabulary}")
    # Without flash attention, whose rounding depends on what else is computed: streamed answers have to be the same.
    engine = LocalEngine(write_over(tmp_path / "m.gguf", vocabulary), n_ctx=16384, n_slots=8, flash_attention="off")
    async with local_client(engine, request_templates=True) as http:
        for place, template in enumerate(TEMPLATES[name]):
            source = (FOLDER / f"{template}.jinja").read_text(encoding="utf-8")
            tool = list(SCHEMAS)[place % len(SCHEMAS)]
            named = {"type": "function", "function": {"name": tool}}
            await asyncio.gather(
                ask(http, "required", set(SCHEMAS), seed=0, chat_template=source, stream=True),
                ask(http, "required", set(SCHEMAS), seed=1, chat_template=source),
                ask(http, named, {tool}, seed=2, chat_template=source, stream=True),
            )
