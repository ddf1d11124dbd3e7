"""Origins and Host names: who may call from where."""

from __future__ import annotations

import httpx
import pytest

from puna.server.cors import is_loopback_name, is_loopback_origin
from puna.server.hosts import host_name
from tests.web import client

LISTED = "https://app.example"
ALLOWED = [
    LISTED,
    "HTTPS://APP.example",
    "http://localhost",
    "http://localhost:3000",
    "https://127.0.0.1:1",
    "http://[::1]:9",
    "http://127.8.9.1",
]
FOREIGN = [
    "https://evil.example",
    "null",
    "",
    "http://app.example",
    "https://app.example.evil.example",
    "https://localhost.evil.example",
    "http://127.0.0.1.evil.example",
    "http://localhost@evil.example",
    "http://evil.example@localhost",
    "http://localhost/path",
    "file://localhost",
    "http://localhost:x",
    "http://[::1",
    "http://0.0.0.0:8080",
]


async def replies(origin: str, *origins: str) -> list[httpx.Response]:
    """One reply of every kind: 200, a stream, 204, 400, 401, 404, 405, 503."""
    head = {"Origin": origin}
    key = {**head, "X-Api-Key": "k"}
    preflight = {**head, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,x-api-key"}
    async with client(api_keys=("k",), cors_origins=origins) as http:
        found = [
            await http.get("/v1/models", headers=head),
            await http.post("/completion", json={"prompt": "x", "stream": True}, headers=key),
            await http.options("/completion", headers=preflight),
            await http.post("/completion", json={}, headers=key),
            await http.get("/props", headers=head),
            await http.get("/nothing", headers=key),
            await http.get("/completion", headers=key),
        ]
    assert [reply.status_code for reply in found] == [200, 200, 204, 400, 401, 404, 405]
    return found


@pytest.mark.parametrize("origin", ALLOWED)
async def test_allowed_origins_are_named_on_every_reply(origin: str) -> None:
    found = await replies(origin, LISTED)
    for reply in found:
        assert reply.headers["access-control-allow-origin"] == origin
        assert reply.headers["access-control-allow-credentials"] == "true"
        assert "origin" in reply.headers["vary"].lower()
    assert "POST" in found[2].headers["access-control-allow-methods"]
    assert found[2].headers["access-control-allow-headers"] == "authorization,x-api-key"


@pytest.mark.parametrize("origin", FOREIGN)
async def test_foreign_origins_are_never_named(origin: str) -> None:
    for reply in await replies(origin, LISTED):
        assert not any(name.startswith("access-control-") for name in reply.headers)


async def test_any_origin_never_comes_with_credentials() -> None:
    for reply in await replies("https://evil.example", "*"):
        assert reply.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in reply.headers


async def test_without_an_origin_there_are_no_headers() -> None:
    async with client() as http:
        reply = await http.get("/health")
        assert not any(name.startswith("access-control-") for name in reply.headers)
        assert (await http.options("/completion")).status_code == 204


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "localhost.", "127.0.0.1", "127.0.0.1:8080", "[::1]", "[::1]:9", "box.lan", "box.lan:80"]
)
async def test_expected_hosts(host: str) -> None:
    async with client(allowed_hosts=("box.lan",)) as http:
        assert (await http.get("/health", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.test", "evil.test:8080", "localhost.evil.test", "127.0.0.1.evil.test", "8.8.8.8", "", "[::2]", "box.lan"]
)
async def test_foreign_hosts_are_403_even_on_public_paths(host: str) -> None:
    async with client() as http:
        for path in ("/health", "/v1/models", "/", "/props", "/nothing"):
            reply = await http.get(path, headers={"Host": host})
            assert reply.status_code == 403 and reply.json()["error"]["type"] == "permission_error"
        assert (await http.post("/completion", json={"prompt": "x"}, headers={"Host": host})).status_code == 403


@pytest.mark.parametrize("bound_to", ["0.0.0.0", "192.168.1.5", "::"])
async def test_other_bindings_take_any_host(bound_to: str) -> None:
    from puna.config import ServerSettings
    from puna.server.app import create_app
    from tests.fakes import FakeEngine

    app = create_app(FakeEngine(), ServerSettings(host=bound_to))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://evil.test") as http:
        assert (await http.get("/health")).status_code == 200


@pytest.mark.parametrize("origin", FOREIGN)
def test_foreign_origins_are_not_loopback(origin: str) -> None:
    assert not is_loopback_origin(origin)


@pytest.mark.parametrize(
    "value, name",
    [("a.b:1", "a.b"), ("A.B", "a.b"), ("[::1]:80", "::1"), ("[::1", "::1"), ("a.", "a"), ("", ""), (" a ", "a"), ("::1", "")],
)
def test_host_name(value: str, name: str) -> None:
    assert host_name(value) == name


@pytest.mark.parametrize(
    "host, loopback",
    [("127.1.2.3", True), ("::1", True), ("[::1]", True), ("localhost", True), ("", False), ("x", False), ("10.0.0.1", False)],
)
def test_loopback_names(host: str, loopback: bool) -> None:
    assert is_loopback_name(host) is loopback
