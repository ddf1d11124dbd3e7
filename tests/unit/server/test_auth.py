"""API keys: what is closed, what is open, and how a key may be sent."""

from __future__ import annotations

import pytest

from puna.config import ServerSettings
from puna.server.app import create_app
from puna.server.auth import bearer_token
from puna.server.paths import PUBLIC
from tests.fakes import FakeEngine
from tests.web import client

KEYS = ("first-secret", "zweiter-schlüssel")
WRONG: list[dict[str, str | bytes]] = [
    {},
    {"Authorization": "Bearer wrong"},
    {"Authorization": f"Bearer {KEYS[0]}x"},
    {"Authorization": "Bearer"},
    {"Authorization": KEYS[0]},
    {"Authorization": f"Basic {KEYS[0]}"},
    {"Authorization": b"Bearer \xff\xfe"},
    {"X-Api-Key": "wrong"},
    {"X-Api-Key": ""},
]


def every_path() -> list[str]:
    app = create_app(FakeEngine(), ServerSettings())
    paths = set(app.openapi()["paths"]) | {"/docs", "/openapi.json"}
    assert {"/completion", "/v1/chat/completions", "/slots", "/metrics", "/props", "/tokenize"} <= paths
    return sorted(paths)


def spellings(path: str) -> list[str]:
    return [path, path + "/", "/" + path, path.upper(), path + "?x=1", path + "%2f", path + "%00"]


async def test_every_path_is_closed_unless_it_is_on_the_list() -> None:
    async with client(api_keys=KEYS) as http:
        for path in [*every_path(), "/nothing"]:
            for spelling in spellings(path):
                if spelling.partition("?")[0] in PUBLIC:
                    continue
                for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD"):
                    reply = await http.request(method, "http://localhost" + spelling, json={})
                    assert reply.status_code == 401, (method, spelling)


@pytest.mark.parametrize("headers", WRONG, ids=repr)
async def test_wrong_keys_are_401_in_the_usual_shape(headers: dict[str, str]) -> None:
    async with client(api_keys=KEYS) as http:
        reply = await http.get("/props", headers=headers)
    assert reply.status_code == 401 and reply.headers["www-authenticate"] == "Bearer"
    assert reply.json()["error"] == {"code": 401, "message": "Invalid API Key", "type": "authentication_error", "param": None}


@pytest.mark.parametrize("key", KEYS)
async def test_keys_are_taken_from_either_header(key: str) -> None:
    raw = key.encode()
    async with client(api_keys=KEYS) as http:
        for headers in (
            {b"authorization": b"Bearer " + raw},
            {b"authorization": b"bearer   " + raw + b" "},
            {b"authorization": b"BEARER " + raw},
            {b"x-api-key": raw},
            {b"x-api-key": raw, b"authorization": b"Bearer "},
            {b"x-api-key": b"wrong", b"authorization": b"Bearer " + raw},
        ):
            assert (await http.get("/props", headers=headers)).status_code == 200, headers


async def test_public_paths_are_open_for_reading_only() -> None:
    async with client(api_keys=KEYS) as http:
        for path in PUBLIC:
            assert (await http.get(path)).status_code == 200
            assert (await http.get(path, headers={"X-Api-Key": "wrong"})).status_code == 200
            assert (await http.post(path)).status_code == 401


async def test_without_keys_everything_is_open() -> None:
    async with client() as http:
        assert (await http.get("/props")).status_code == 200
        assert (await http.get("/props", headers={"Authorization": "Bearer whatever"})).status_code == 200


@pytest.mark.parametrize("value, token", [(None, ""), ("", ""), ("Bearer", ""), ("Bearer  a b ", "a b"), ("Token x", "")])
def test_bearer_token(value: str | None, token: str) -> None:
    assert bearer_token(value) == token
