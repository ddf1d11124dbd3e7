from __future__ import annotations

import asyncio
import json

import pytest

from puna.bench.client import Target
from puna.errors import StartupError
from tests.unit.bench.fake_server import FakeServer, Reply, events

BODY = {"prompt": "a b c", "max_tokens": 5}
PATH = "/v1/completions"


@pytest.mark.parametrize("chunks", [True, False])
@pytest.mark.parametrize("path", [PATH, "/v1/chat/completions"])
async def test_a_stream_is_read(chunks: bool, path: str) -> None:
    async with FakeServer(chunks=chunks, cached=2, pause=0.001).serve() as server:
        body = BODY if path == PATH else {"messages": [{"role": "user", "content": "a b"}], "max_tokens": 5}
        record = await Target(server.url, api_key="secret").stream(path, body)
    assert (record.text, record.tokens, record.cached_tokens, record.error) == ("w0 w1 w2 w3 w4 ", 5, 2, "")
    assert record.start < record.arrivals[0] < record.arrivals[-1] <= record.end
    asked, sent, headers = server.requests[0]
    assert (asked, sent["stream"], sent["stream_options"]) == (path, True, {"include_usage": True})
    assert headers["authorization"] == "bearer secret"


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
async def test_the_url_may_end_in_v1(suffix: str) -> None:
    async with FakeServer().serve() as server:
        assert (await Target(server.url + suffix).stream(PATH, BODY)).error == ""
        assert Target(server.url + suffix).url == server.url


async def test_the_model_is_found_out_unless_given() -> None:
    async with FakeServer().serve() as server:
        target, named = Target(server.url), Target(server.url, model="mine")
        await target.discover()
        await named.discover()
        await target.stream(PATH, BODY)
    assert (target.model, named.model) == ("fake-model", "mine")
    assert server.requests[-1][1]["model"] == "fake-model"


async def test_a_server_that_lists_no_models_can_be_used_all_the_same() -> None:
    async with FakeServer(fail=lambda path: (404, {"Content-Length": "2"}, [b"{}"])).serve() as server:
        target = Target(server.url)
        await target.discover()
    assert target.model == ""


async def test_nobody_there() -> None:
    async with FakeServer().serve() as server:
        target = Target(server.url)
    with pytest.raises(StartupError, match=r"http://127.0.0.1:\d+ does not answer"):
        await target.discover()
    assert "onnect" in (await target.stream(PATH, BODY)).error


def failing(status: int, content: bytes, **headers: str) -> Reply:
    return status, {"Content-Length": str(len(content)), **headers}, [content]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (failing(429, json.dumps({"error": {"message": "too busy"}}).encode()), "HTTP 429: too busy"),
        (failing(500, b"<html>"), "HTTP 500: <html>"),
        (failing(200, events({"choices": [{"text": "a"}]}, {"error": {"message": "died"}})), "died"),
        (failing(200, events({"choices": []}, "[DONE]")), "the answer has no text"),
        ((200, {"Content-Length": "100"}, [events({"choices": [{"text": "a"}]})]), "in the middle of its answer"),
        ((200, {"Transfer-Encoding": "chunked"}, [b"zz\r\n"]), "not the length of a chunk"),
    ],
)
async def test_failures_are_told_not_raised(reply: Reply, error: str) -> None:
    async with FakeServer(fail=lambda path: reply).serve() as server:
        assert error in (await Target(server.url).stream(PATH, BODY)).error


async def test_time_runs_out() -> None:
    async with FakeServer(pause=0.2).serve() as server:
        record = await Target(server.url, timeout=0.3).stream(PATH, BODY)
    assert record.error == "no end within 0 seconds"


async def test_cancelling_hangs_up() -> None:
    async with FakeServer(pause=0.01).serve() as server:
        task = asyncio.create_task(Target(server.url).stream(PATH, {**BODY, "max_tokens": 10000}))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(100):
            if server.hung_up:
                break
            await asyncio.sleep(0.02)
    assert server.hung_up == 1


@pytest.mark.parametrize("url", ["", "ftp://x", "http://", "http://x:port", "x:99999999"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(StartupError, match="is not the address of a server"):
        Target(url)


def test_a_bare_host_will_do() -> None:
    assert Target("127.0.0.1:8080").url == "http://127.0.0.1:8080"
