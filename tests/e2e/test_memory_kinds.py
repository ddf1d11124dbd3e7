"""Models whose memory cannot be cut, or sees a window only, or that do not generate at all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import ServerMaker
from tests.e2e.dialects import CHAT, forced

MODELS = [
    ("tiny_llama", "split"),
    ("tiny_llama", "unified"),
    ("tiny_llama_bpe", "split"),
    ("tiny_gemma3", "split"),
    ("tiny_gemma3", "unified"),
    ("tiny_mamba", "unified"),
]


@pytest.mark.parametrize(("model", "layout"), MODELS)
def test_conversations_grow_and_branch(model: str, layout: str, make_server: ServerMaker, request: pytest.FixtureRequest) -> None:
    """With the cache, answers equal those without it; forced ones are exact."""
    path: Path = request.getfixturevalue(model)
    server = make_server(path, "-c", "512", "-np", "2", "-t", "1", "--layout", layout)

    def talk(number: int) -> list[tuple[dict[str, Any], str]]:
        seen = []
        messages = [{"role": "system", "content": "one long beginning for all of them, " * 2}]
        for turn in range(4):
            messages.append({"role": "user", "content": f"user {number % 2} asks {turn}"})
            body = {"messages": list(messages), "max_tokens": 6, "temperature": 0, "ignore_eos": True}
            text = CHAT.read(server.json(CHAT.path, body)).text
            seen.append((body, text))
            forced_body = {"messages": list(messages), "grammar": forced(f"answer {number} 😀")}
            assert CHAT.read(server.json(CHAT.path, forced_body)).text == f"answer {number} 😀"
            messages.append({"role": "assistant", "content": f"answer {number}" if turn % 2 else text.replace("\ufffd", "")})
        return seen

    with ThreadPoolExecutor(4) as pool:
        seen = [item for items in pool.map(talk, range(4)) for item in items]
    server.assert_alive()
    for body, text in seen:
        assert CHAT.read(server.json(CHAT.path, {**body, "cache_prompt": False})).text == text
    server.stop()


@pytest.mark.parametrize("model", ["tiny_gemma3", "tiny_mamba"])
def test_a_long_answer_and_a_shorter_prompt_after_it(
    model: str, make_server: ServerMaker, request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(model)
    server = make_server(path, "-c", "512", "-np", "1", "-t", "1")
    prompt = list(range(300, 400))
    cold = {"n_predict": 8, "temperature": 0, "ignore_eos": True, "cache_prompt": False}
    warm = {**cold, "cache_prompt": True}
    server.json("/completion", {"prompt": prompt, **warm, "n_predict": 200})
    for cut in (100, 99, 50, 3, 100):
        expected = server.json("/completion", {"prompt": prompt[:cut], **cold})["content"]
        assert server.json("/completion", {"prompt": prompt[:cut], **warm})["content"] == expected
    server.assert_alive()


def test_an_embedding_model_says_that_it_does_not_generate(tiny_bert: Path, make_server: ServerMaker) -> None:
    """It serves embeddings without a flag for that; the routes that generate name what is missing."""
    server = make_server(tiny_bert, "-c", "128", "-np", "1", "-t", "1")
    assert len(server.json("/v1/embeddings", {"input": ["a", "b"]})["data"]) == 2
    for path, body in (("/completion", {"prompt": "a"}), (CHAT.path, {"messages": [{"role": "user", "content": "a"}]})):
        for stream in (False, True):
            reply = server.post(path, {**body, "stream": stream})
            assert reply.status_code == 501, reply.text
            assert "does not generate text" in reply.json()["error"]["message"]
    assert server.get("/health").status_code == 200
    server.stop()
