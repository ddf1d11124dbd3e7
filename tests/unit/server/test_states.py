"""Health, errors of every kind, and what is said while there is no model."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from puna.config import ServerSettings
from puna.errors import (
    AuthenticationFailed,
    ContextExceeded,
    InputTooLong,
    InvalidRequest,
    NotFound,
    NotSupported,
    PermissionDenied,
    PunaError,
    QueueFull,
    RequestKilledEngine,
    ServerFault,
    TooLarge,
    Unavailable,
)
from puna.server.app import create_app
from tests.fakes import FACTS, FakeEngine
from tests.web import client

TURN = {"messages": [{"role": "user", "content": "x"}]}
ROUTES: list[tuple[str, dict[str, Any]]] = [
    ("/completion", {"prompt": "x"}),
    ("/v1/completions", {"prompt": "x"}),
    ("/v1/chat/completions", TURN),
]


@pytest.mark.parametrize("path", ["/health", "/v1/health"])
async def test_health(path: str) -> None:
    for state in ("ready", "restarting"):
        async with client(FakeEngine(state=state)) as http:
            reply = await http.get(path)
            assert (reply.status_code, reply.text) == (200, '{"status":"ok"}')


@pytest.mark.parametrize(
    "engine, message",
    [
        (FakeEngine(facts=None, state="loading"), "Loading model"),
        (FakeEngine(facts=None, state="failed", failure="truncated file"), "truncated file"),
        (FakeEngine(facts=FACTS, state="failed", failure="gone"), "gone"),
    ],
)
async def test_without_a_model_everything_that_needs_one_is_503(engine: FakeEngine, message: str) -> None:
    async with client(engine) as http:
        found = [await http.get(path) for path in ("/health", "/v1/health", "/v1/models", "/models", "/props", "/slots")]
        found += [await http.post(path, json=body) for path, body in ROUTES]
        found += [await http.post("/tokenize", json={"content": "x"}), await http.post("/apply-template", json=TURN)]
        assert (await http.get("/metrics")).status_code == 200
        assert (await http.get("/")).status_code == 200
    for reply in found:
        error = reply.json()["error"]
        assert reply.status_code == 503 and int(reply.headers["retry-after"]) > 0
        assert error["type"] == "unavailable_error" and message in error["message"] and error["code"] == 503
    assert engine.streams == []


async def test_draining_refuses_new_work_only() -> None:
    app = create_app(FakeEngine(), ServerSettings())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as http:
        app.state.service.drain()
        assert (await http.get("/health")).status_code == 503
        assert (await http.post("/completion", json={"prompt": "x"})).status_code == 503
        assert (await http.get("/metrics")).status_code == 200


ERRORS: list[tuple[PunaError, int, str, dict[str, Any], dict[str, str]]] = [
    (InvalidRequest("bad", param="a.0"), 400, "invalid_request_error", {"param": "a.0"}, {}),
    (ContextExceeded(300, 256), 400, "exceed_context_size_error", {"n_prompt_tokens": 300, "n_ctx": 256}, {}),
    (
        InputTooLong(2, 300, 256, param="input"),
        400,
        "exceed_context_size_error",
        {"n_prompt_tokens": 300, "n_ctx": 256, "param": "input.2"},
        {},
    ),
    (AuthenticationFailed("no"), 401, "authentication_error", {}, {"www-authenticate": "Bearer"}),
    (PermissionDenied("no"), 403, "permission_error", {}, {}),
    (NotFound("no"), 404, "not_found_error", {}, {}),
    (TooLarge("no"), 413, "invalid_request_error", {}, {}),
    (QueueFull("full", retry_after=7), 429, "rate_limit_error", {}, {"retry-after": "7"}),
    (ServerFault("broke"), 500, "server_error", {}, {}),
    (RequestKilledEngine("twice"), 500, "server_error", {}, {}),
    (NotSupported("no"), 501, "not_supported_error", {}, {"x-should-retry": "false"}),
    (Unavailable("later", retry_after=3), 503, "unavailable_error", {}, {"retry-after": "3"}),
]


@pytest.mark.parametrize("error, status, kind, more, headers", ERRORS, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_errors_of_admission_are_plain_replies(
    error: PunaError, status: int, kind: str, more: dict[str, Any], headers: dict[str, str], stream: bool
) -> None:
    async with client(FakeEngine(refuse=lambda _generation, _number: error)) as http:
        for path, body in ROUTES:
            reply = await http.post(path, json={**body, "stream": stream})
            assert reply.status_code == status and reply.headers["content-type"] == "application/json"
            assert reply.json()["error"] == {"code": status, "message": error.message, "type": kind, "param": None, **more}
            assert {name: reply.headers[name] for name in headers} == headers


def test_the_table_above_is_whole() -> None:
    def below(kind: type[PunaError]) -> set[type[PunaError]]:
        return {kind}.union(*(below(child) for child in kind.__subclasses__()))

    known = {kind for kind in below(PunaError) if kind.__module__ == "puna.errors"}
    assert {kind.__name__ for kind in known} == {type(row[0]).__name__ for row in ERRORS} | {"PunaError", "StartupError"}


async def test_an_over_long_prompt_says_what_clients_look_for() -> None:
    async with client(FakeEngine(refuse=lambda _generation, _number: ContextExceeded(300, 256))) as http:
        reply = await http.post("/v1/chat/completions", json=TURN)
    assert "exceeds the available context size" in reply.json()["error"]["message"]


@pytest.mark.parametrize("stream", [False, True])
async def test_unforeseen_errors_are_logged_and_not_told(stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    async with client(FakeEngine(refuse=lambda _generation, _number: KeyError("secret detail"))) as http:
        reply = await http.post("/completion", json={"prompt": "x", "stream": stream})
    assert reply.status_code == 500 and reply.json()["error"]["type"] == "server_error"
    assert "secret" not in reply.text
    assert "secret detail" in caplog.text and "Traceback" in caplog.text


@pytest.mark.parametrize(
    "method, path, status, kind",
    [
        ("GET", "/nothing", 404, "not_found_error"),
        ("POST", "/v1/nothing", 404, "not_found_error"),
        ("GET", "/health/", 404, "not_found_error"),
        ("GET", "//health", 404, "not_found_error"),
        ("GET", "/HEALTH", 404, "not_found_error"),
        ("GET", "/api/hello", 404, "not_found_error"),
        ("GET", "/completion", 405, "invalid_request_error"),
        ("DELETE", "/v1/chat/completions", 405, "invalid_request_error"),
        ("POST", "/health", 405, "invalid_request_error"),
    ],
)
async def test_unknown_routes_and_methods(method: str, path: str, status: int, kind: str) -> None:
    async with client() as http:
        reply = await http.request(method, "http://localhost" + path)
    assert reply.status_code == status and reply.headers["content-type"] == "application/json"
    error = reply.json()["error"]
    assert error["type"] == kind and error["code"] == status and error["param"] is None and error["message"]
    assert ("allow" in reply.headers) is (status == 405)
