"""The OpenAI routes' replies, read with OpenAI's own types."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types import Completion, Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from puna.errors import ServerFault
from puna.types import Chunk, Progress, TokenProb
from tests.fakes import FakeEngine, say
from tests.web import client, frames, objects, refuse_constant

CHAT = "/v1/chat/completions"
TURN = {"messages": [{"role": "user", "content": "x"}]}
USAGE = {"stream_options": {"include_usage": True}}


async def post(engine: FakeEngine, path: str, body: dict[str, Any]) -> Any:
    async with client(engine) as http:
        reply = await http.post(path, json=body)
        assert reply.status_code == 200, reply.text
        return json.loads(reply.text, parse_constant=refuse_constant)


async def stream(engine: FakeEngine, path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """All frames of a stream but the closing one, which must be there."""
    async with client(engine) as http:
        reply = await http.post(path, json={**body, "stream": True})
        assert reply.status_code == 200, reply.text
        assert reply.headers["content-type"].startswith("text/event-stream")
    *found, last = frames(reply.text)
    assert last == "[DONE]"
    return [frame for frame in found if isinstance(frame, dict)]


@pytest.mark.parametrize("path", [CHAT, "/chat/completions"])
async def test_a_whole_chat_reply(path: str) -> None:
    engine = FakeEngine(script=lambda _: say("Hello", " world", stop_type="limit"))
    reply = await post(engine, path, {**TURN, "model": "gpt-4o"})
    ChatCompletion.model_validate(reply, strict=True)
    (choice,) = reply["choices"]
    assert choice == {"finish_reason": "length", "index": 0, "message": {"role": "assistant", "content": "Hello world"}}
    assert reply["model"] == "tiny-test" and reply["object"] == "chat.completion" and reply["id"].startswith("chatcmpl-")
    n_prompt = len(engine.last.prompt)
    assert reply["usage"] == {
        "completion_tokens": 11,
        "prompt_tokens": n_prompt,
        "total_tokens": n_prompt + 11,
        "prompt_tokens_details": {"cached_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    assert reply["timings"]["predicted_n"] == 11


@pytest.mark.parametrize("n", [1, 2, 3])
async def test_chat_chunks(n: int) -> None:
    engine = FakeEngine(script=lambda number: say("a", "b\n😀", pause=0.001 * (3 - number)))
    chunks = await stream(engine, CHAT, {**TURN, "n": n})
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk, strict=True)
        assert "usage" not in chunk
    assert len({(chunk["id"], chunk["created"], chunk["model"], chunk["object"]) for chunk in chunks}) == 1
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    assert [choice["index"] for choice in choices[:n]] == list(range(n))
    for index in range(n):
        mine = [choice for choice in choices if choice["index"] == index]
        assert [choice["delta"] for choice in mine] == [
            {"role": "assistant", "content": None},
            {"content": "a"},
            {"content": "b\n😀"},
            {},
        ]
        assert [choice["finish_reason"] for choice in mine] == [None, None, None, "stop"]
    assert "timings" in chunks[-1]


@pytest.mark.parametrize("path, body", [(CHAT, TURN), ("/v1/completions", {"prompt": ["x", "yy"]})])
@pytest.mark.parametrize("n", [1, 2])
async def test_usage_is_one_last_chunk_and_equal_to_the_whole_replys(path: str, body: dict[str, Any], n: int) -> None:
    chunks = await stream(FakeEngine(), path, {**body, **USAGE, "n": n})
    *rest, last = chunks
    assert last["choices"] == [] and last["id"] == rest[0]["id"]
    assert all("usage" not in chunk and chunk["choices"] for chunk in rest)
    assert last["usage"] == (await post(FakeEngine(), path, {**body, "n": n}))["usage"]
    assert all("usage" not in chunk for chunk in await stream(FakeEngine(), path, {**body, "stream_options": {}}))


async def test_usage_counts_a_prompt_once() -> None:
    engine = FakeEngine(script=lambda number: say("abc", cache_n=(0, 5, 4, 4)[number]))
    usage = (await post(engine, "/v1/completions", {"prompt": ["x", "yy"], "n": 2}))["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (3, 12)
    assert usage["prompt_tokens_details"]["cached_tokens"] == 4


@pytest.mark.parametrize("stop_type, reason", [("eos", "stop"), ("word", "stop"), ("limit", "length")])
async def test_finish_reasons(stop_type: Any, reason: str) -> None:
    engine = FakeEngine(script=lambda _: say("a", stop_type=stop_type))
    for path, body in ((CHAT, TURN), ("/v1/completions", {"prompt": "x"})):
        assert (await post(engine, path, body))["choices"][0]["finish_reason"] == reason
        assert (await stream(engine, path, body))[-1]["choices"][0]["finish_reason"] == reason


async def test_ids_are_unique() -> None:
    ids = {(await post(FakeEngine(), CHAT, TURN))["id"] for _ in range(5)}
    ids |= {(await stream(FakeEngine(), CHAT, TURN))[0]["id"] for _ in range(5)}
    assert len(ids) == 10


async def test_a_whole_completion() -> None:
    engine = FakeEngine(script=lambda number: say(f"answer {number}"))
    reply = await post(engine, "/v1/completions", {"prompt": ["a", "b"], "n": 2})
    Completion.model_validate(reply, strict=True)
    assert [(choice["index"], choice["text"]) for choice in reply["choices"]] == [(i, f"answer {i}") for i in range(4)]
    assert all(choice["logprobs"] is None for choice in reply["choices"])
    assert reply["object"] == "text_completion" and reply["id"].startswith("cmpl-")


async def test_completion_chunks() -> None:
    chunks = await stream(FakeEngine(script=lambda _: say("a", "b")), "/v1/completions", {"prompt": "x", "n": 2})
    for chunk in chunks:
        for choice in chunk["choices"]:
            assert list(choice) == ["text", "index", "logprobs", "finish_reason"]
        assert chunk["object"] == "text_completion"
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    for index in (0, 1):
        mine = [(c["text"], c["finish_reason"]) for c in choices if c["index"] == index]
        assert mine == [("a", None), ("b", None), ("", "stop")]


async def test_echo() -> None:
    body = {"prompt": ["<s>ab", [97]], "echo": True, "n": 2}
    reply = await post(FakeEngine(), "/v1/completions", body)
    assert [c["text"] for c in reply["choices"]] == ["<s>abHello world"] * 2 + ["aHello world"] * 2
    chunks = await stream(FakeEngine(), "/v1/completions", body)
    texts = ["".join(c["text"] for chunk in chunks for c in chunk["choices"] if c["index"] == i) for i in range(4)]
    assert texts == [c["text"] for c in reply["choices"]]


PROBS = (TokenProb(0xC3, -0.25, ((0xC3, -0.25), (0x61, float("-inf")))), TokenProb(0xA9, -0.5, ((0xA9, -0.5), (0x62, -2.0))))
SCRIPT = [Chunk(text="é", tokens=(0xC3, 0xA9), probs=PROBS), *say("z", probs=True)]


@pytest.mark.parametrize(
    "fields, n_probs, n_top",
    [
        ({"logprobs": True}, 1, 0),
        ({"logprobs": True, "top_logprobs": 0}, 1, 0),
        ({"logprobs": True, "top_logprobs": 1}, 1, 1),
        ({"logprobs": True, "top_logprobs": 20}, 20, 2),
        ({"logprobs": 2}, 2, 2),
        ({"n_probs": 2}, 2, 2),
    ],
)
async def test_chat_logprobs(fields: dict[str, Any], n_probs: int, n_top: int) -> None:
    engine = FakeEngine(script=lambda _: SCRIPT)
    reply = await post(engine, CHAT, {**TURN, **fields})
    ChatCompletion.model_validate(reply, strict=True)
    content = reply["choices"][0]["logprobs"]["content"]
    assert engine.last.sampling.n_probs == n_probs
    assert [len(entry["top_logprobs"]) for entry in content] == [n_top] * 3
    assert b"".join(bytes(entry["bytes"]) for entry in content).decode() == reply["choices"][0]["message"]["content"]
    chunks = await stream(engine, CHAT, {**TURN, **fields})
    streamed = [e for c in chunks for choice in c["choices"] for e in choice.get("logprobs", {}).get("content", [])]
    assert streamed == content and engine.every_token[-1] is True
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk, strict=True)


@pytest.mark.parametrize("fields", [{}, {"logprobs": False}, {"logprobs": False, "top_logprobs": 0}, {"top_logprobs": None}])
async def test_no_logprobs_unless_asked_for(fields: dict[str, Any]) -> None:
    engine = FakeEngine()
    assert "logprobs" not in (await post(engine, CHAT, {**TURN, **fields}))["choices"][0]
    assert engine.last.sampling.n_probs == 0


@pytest.mark.parametrize("logprobs, n_probs, tops", [(0, 1, [0, 0]), (1, 1, [1, 1]), (2, 2, [2, 2]), (True, 1, [0, 0])])
async def test_legacy_logprobs(logprobs: Any, n_probs: int, tops: list[int]) -> None:
    engine = FakeEngine(script=lambda _: SCRIPT)
    reply = await post(engine, "/v1/completions", {"prompt": "x", "logprobs": logprobs})
    Completion.model_validate(reply, strict=True)
    arrays = reply["choices"][0]["logprobs"]
    assert arrays["tokens"] == ["bytes:\\xc3", "bytes:\\xa9", "z"]
    assert arrays["token_logprobs"] == [-0.25, -0.5, -0.5]
    assert arrays["text_offset"] == [0, 0, 1]
    assert [len(top) for top in arrays["top_logprobs"][:2]] == tops
    assert engine.last.sampling.n_probs == n_probs
    chunks = await stream(engine, "/v1/completions", {"prompt": "x", "logprobs": logprobs})
    parts = [choice["logprobs"] for chunk in chunks for choice in chunk["choices"] if choice["logprobs"]]
    for name, values in arrays.items():
        assert [value for part in parts for value in part[name]] == values


async def test_progress_in_streams() -> None:
    progress = Progress(total=10, cache=2, processed=6, time_ms=1.5)
    engine = FakeEngine(script=lambda _: [Chunk(progress=progress), Chunk(progress=progress), *say("a")])
    for path, body in ((CHAT, TURN), ("/v1/completions", {"prompt": "x"})):
        chunks = await stream(engine, path, {**body, "return_progress": True, "timings_per_token": True})
        assert len([chunk for chunk in chunks if chunk.get("prompt_progress")]) == 2
        roles = [c["delta"].get("role") for chunk in chunks for c in chunk["choices"] if "delta" in c]
        assert roles == ([] if path != CHAT else ["assistant", None, None, None, None])
        assert "timings" in chunks[-2]


async def test_an_error_in_mid_stream_is_the_last_frame() -> None:
    engine = FakeEngine(script=lambda _: [Chunk(text="a", tokens=(97,)), 0.001, ServerFault("the engine failed")])
    for path, body in ((CHAT, TURN), ("/v1/completions", {"prompt": "x"}), ("/completion", {"prompt": "x"})):
        async with client(engine) as http:
            reply = await http.post(path, json={**body, "stream": True})
        assert reply.status_code == 200 and "[DONE]" not in reply.text
        *_, last = objects(reply.text)
        assert last == {"error": {"code": 500, "message": "the engine failed", "type": "server_error", "param": None}}
        assert engine.streams[-1].closed


@pytest.mark.parametrize(
    "path, fields, status, param",
    [
        (CHAT, {"top_logprobs": 5}, 400, "top_logprobs"),
        (CHAT, {"logprobs": False, "top_logprobs": 5}, 400, "top_logprobs"),
        (CHAT, {"logprobs": "x"}, 400, "logprobs"),
        (CHAT, {"tools": [{"type": "function"}]}, 400, "tools.0.name"),
        (CHAT, {"tools": []}, 200, None),
        (CHAT, {"tool_choice": "none"}, 200, None),
        (CHAT, {"tool_choice": "auto"}, 200, None),
        (CHAT, {"tool_choice": "required"}, 400, "tool_choice"),
        (CHAT, {"tool_choice": {"type": "function", "function": {"name": "f"}}}, 400, "tool_choice"),
        (CHAT, {"reasoning_budget_tokens": -1}, 200, None),
        (CHAT, {"reasoning_budget_tokens": 5}, 200, None),
        (CHAT, {"reasoning_budget_tokens": -2}, 400, "reasoning_budget_tokens"),
        (CHAT, {"template": "x"}, 400, "template"),
        (CHAT, {"chat_template": "x"}, 400, "chat_template"),
        (CHAT, {"chat_template_kwargs": {"messages": []}}, 400, "chat_template_kwargs.messages"),
        (CHAT, {"chat_template_kwargs": {"enable_thinking": False}, "reasoning_effort": "low"}, 200, None),
        (CHAT, {"continue_final_message": True, "add_generation_prompt": True}, 400, "continue_final_message"),
        ("/v1/completions", {"suffix": ""}, 200, None),
        ("/v1/completions", {"suffix": "x", "echo": True, "logprobs": 1}, 400, "suffix"),
        ("/v1/completions", {"prompt": None}, 400, "prompt"),
        ("/v1/completions", {"prompt": []}, 400, "prompt"),
    ],
)
async def test_what_is_refused(path: str, fields: dict[str, Any], status: int, param: str | None) -> None:
    async with client() as http:
        reply = await http.post(path, json={**TURN, "prompt": "x", **fields})
    assert reply.status_code == status, reply.text
    if status != 200:
        assert reply.json()["error"]["param"] == param


async def test_models() -> None:
    async with client(alias="mine") as http:
        for path in ("/v1/models", "/models"):
            listing = (await http.get(path)).json()
            (model,) = listing["data"]
            Model.model_validate(model, strict=True)
            assert (listing["object"], listing["first_id"], listing["last_id"]) == ("list", "mine", "mine")
            assert listing["has_more"] is False and "status" not in model
            assert (model["id"], model["type"], model["display_name"]) == ("mine", "model", "mine")
            assert model["meta"]["n_ctx_train"] == 2048 and model["created_at"].endswith("Z")
            assert listing["models"][0]["name"] == "mine"
        assert (await http.get("/v1/models/mine")).json()["id"] == "mine"
        assert (await http.get("/v1/models/other")).status_code == 404
