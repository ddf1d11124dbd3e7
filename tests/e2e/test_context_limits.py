"""A prompt that does not fit is refused with both counts; a large limit never shortens one that does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.dialects import CHAT, DIALECTS, NATIVE, Dialect
from tests.e2e.server import Server

N_CTX = 256


@pytest.fixture(scope="module")
def small_server(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One slot of 256 tokens."""
    with Server(tiny_llama, "-c", str(N_CTX), "-np", "1", "-t", "1", log=tmp_path_factory.mktemp("server") / "log") as server:
        yield server
        server.stop()


def count(server: Server, dialect: Dialect, prompt: str) -> int:
    """Tokens of the prompt as the dialect sends it."""
    text = prompt
    if dialect is CHAT:
        text = server.json("/apply-template", {"messages": [{"role": "user", "content": prompt}]})["prompt"]
    return len(server.json("/tokenize", {"content": text, "add_special": True, "parse_special": True})["tokens"])


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_over_long_prompt_is_refused_with_both_counts(small_server: Server, dialect: Dialect, stream: bool) -> None:
    prompt = "the water " * 700
    reply = small_server.post(dialect.path, dialect.body(prompt, stream=stream, limit=4))
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert error["type"] == "exceed_context_size_error"
    assert error["n_ctx"] == N_CTX
    assert error["n_prompt_tokens"] == count(small_server, dialect, prompt)
    assert "exceeds the available context size" in error["message"]
    small_server.assert_alive()


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
def test_a_large_limit_never_cuts_the_prompt(small_server: Server, dialect: Dialect) -> None:
    prompt = "the water " * 90
    n_prompt = count(small_server, dialect, prompt)
    assert N_CTX - 80 < n_prompt < N_CTX
    for stream in (False, True):
        answer = dialect.ask(small_server, prompt, stream=stream, limit=10_000, ignore_eos=True)
        assert answer.usage is not None
        assert answer.usage[0] == n_prompt
        assert answer.finish == ("limit" if dialect is NATIVE else "length")
        assert n_prompt + answer.usage[1] in (N_CTX, N_CTX + 1)


def test_prompts_at_the_edge(small_server: Server) -> None:
    for n in range(N_CTX - 3, N_CTX + 4):
        reply = small_server.post("/completion", {"prompt": [5] * n, "ignore_eos": True})
        assert reply.status_code == (200 if n <= N_CTX - 1 else 400 if n > N_CTX else reply.status_code)
        if reply.status_code == 200:
            body = reply.json()
            assert body["tokens_evaluated"] == n and body["truncated"] is False
            assert n + body["tokens_predicted"] in (N_CTX, N_CTX + 1)
        else:
            assert reply.json()["error"]["n_prompt_tokens"] == n
        small_server.assert_alive()


def test_without_a_limit_an_answer_ends_with_the_context(small_server: Server) -> None:
    reply: dict[str, Any] = small_server.json("/completion", {"prompt": "x", "ignore_eos": True})
    assert reply["stop_type"] == "limit"
    assert reply["tokens_evaluated"] + reply["tokens_predicted"] in (N_CTX, N_CTX + 1)
