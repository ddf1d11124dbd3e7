"""A client that goes away stops its own work, whatever its state, and nobody else's."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import ServerMaker
from tests.e2e.dialects import DIALECTS, NATIVE, Dialect, forced
from tests.e2e.server import Server, wait_until
from tests.e2e.sse import join_text

ENDLESS: dict[str, Any] = {"ignore_eos": True, "limit": 7000}
LONG_PROMPT = list(range(300, 420)) * 60


def leave(server: Server, path: str, body: dict[str, Any]) -> threading.Thread:
    """Start a request that is given up after half a second, as a client with a short timeout does."""

    def run() -> None:
        with pytest.raises(httpx.TimeoutException):
            httpx.post(server.url + path, json=body, timeout=0.5, trust_env=False)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
def test_closing_a_stream_frees_its_slot(slow_server: Server, dialect: Dialect) -> None:
    with slow_server.stream(dialect.path, dialect.body("x", **ENDLESS)) as frames:
        next(frames), next(frames)
        assert slow_server.busy_slots() == 1
    slow_server.wait_idle(2)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: d.name)
def test_giving_up_a_whole_reply_frees_its_slot(slow_server: Server, dialect: Dialect) -> None:
    thread = leave(slow_server, dialect.path, dialect.body("x", **ENDLESS))
    slow_server.wait_busy(1, 0.5)
    thread.join(10)
    slow_server.wait_idle(2)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_closing_during_prefill_stops_it(slow_server: Server, stream: bool) -> None:
    before = slow_server.metric("llamacpp:prompt_tokens_total")
    body = {"prompt": LONG_PROMPT, "n_predict": 1, "cache_prompt": False, "stream": stream}
    if stream:
        with httpx.Client(trust_env=False) as client:
            request = client.stream("POST", slow_server.url + "/completion", json=body)
            with request as reply:
                assert reply.status_code == 200
                slow_server.wait_busy(1)
    else:
        leave(slow_server, "/completion", body).join(10)
    slow_server.wait_idle(2)
    assert slow_server.metric("llamacpp:prompt_tokens_total") - before < len(LONG_PROMPT)


def test_a_queued_client_that_leaves_is_never_started(slow_llama: Path, make_server: ServerMaker) -> None:
    server = make_server(slow_llama, "-c", "4096", "-np", "1", "-t", "1")
    body = NATIVE.body("a", n_predict=500, ignore_eos=True, seed=1, temperature=1.0)
    alone = server.json("/completion", {**body, "cache_prompt": False})["content"]
    queued_prompt = [444] * 500
    before = server.metric("llamacpp:prompt_tokens_total")
    with server.stream("/completion", {**body, "cache_prompt": False}) as frames:
        first = join_text([next(frames)])
        thread = leave(server, "/completion", {"prompt": queued_prompt, "n_predict": 1})
        thread.join(10)
        assert first + join_text(frames) == alone
    server.wait_idle(2)
    assert server.json("/completion", NATIVE.body("b", grammar=forced("hello")))["content"] == "hello"
    time.sleep(0.2)
    assert server.metric("llamacpp:prompt_tokens_total") - before < 200


def test_leaving_one_of_several_choices_stops_them_all(slow_server: Server) -> None:
    body = {"messages": [{"role": "user", "content": "x"}], "n": 2, "max_tokens": 5000, "ignore_eos": True}
    with slow_server.stream("/v1/chat/completions", body) as frames:
        for _ in range(6):
            next(frames)
    slow_server.wait_idle(2)


def test_a_hundred_quick_leavers_leave_nothing_behind(tiny_server: Server) -> None:
    for i in range(100):
        with tiny_server.stream("/completion", NATIVE.body("x", n_predict=900, ignore_eos=True)) as frames:
            if i % 3:
                next(frames)
    tiny_server.wait_idle(2)
    wait_until(lambda: tiny_server.metric("llamacpp:requests_deferred") == 0, 2, "requests still wait")
    tiny_server.assert_alive()


def test_followers_go_on_when_the_one_they_wait_for_leaves(slow_llama: Path, make_server: ServerMaker) -> None:
    """Clients that share a long prompt wait for the first of them to have it read; that one goes away half-way."""
    server = make_server(slow_llama, "-c", "8192", "-np", "4", "-t", "1")
    with ThreadPoolExecutor(3) as pool:
        leader = leave(server, "/completion", {"prompt": LONG_PROMPT, "n_predict": 1})
        server.wait_busy(1)
        bodies = [{"prompt": [*LONG_PROMPT[:4000], 500 + i], "n_predict": 2, "ignore_eos": True} for i in range(3)]
        replies = [pool.submit(server.json, "/completion", body) for body in bodies]
        leader.join(10)
        assert [reply.result(30)["tokens_predicted"] for reply in replies] == [2, 2, 2]
    assert server.metric("llamacpp:prompt_tokens_total") < 2 * len(LONG_PROMPT)
