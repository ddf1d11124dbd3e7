"""Requests that find their model among several."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest

from puna.api.responses.store import ResponseStore
from puna.config import ServerSettings, Settings
from puna.errors import StartupError
from puna.models.catalogue import Catalogue, Entry, Job
from puna.models.pool import Pool
from puna.server.app import create_app, create_inner_app
from puna.server.dispatch import Dispatcher
from puna.server.jobs import job_of
from puna.server.served import ServedModel
from tests.fakes import FakeEngine, say
from tests.unit.models.test_catalogue import entry


class FakeServed(ServedModel):
    """A model of scripted answers, which say its name."""

    def __init__(self, model: Entry, kept: ResponseStore) -> None:
        name = model.name
        self.engine = FakeEngine(script=lambda _: say(name))  # type: ignore[assignment]  # stands in for a worker's client
        app = create_inner_app(FakeEngine(script=lambda _: say(name)), model.settings.server, kept=kept)
        self.app = app
        self.service = app.state.service
        self._name = name

    async def load(self, on_loading: Callable[[float], None]) -> None:
        if self._name == "broken":
            raise StartupError("the file is cut short")

    async def unload(self, grace: float) -> None:
        return None


def named(name: str, *jobs: Job, aliases: tuple[str, ...] = ()) -> Entry:
    one = entry(name, *jobs, aliases=aliases)
    settings = Settings(engine=one.settings.engine, server=ServerSettings(alias=name))
    return dataclasses.replace(one, settings=settings)


ENTRIES = (named("alpha", aliases=("gpt-4",)), named("beta"), named("vectors", "embedding"), named("broken"))


def web(*, autoload: bool = True, **settings: Any) -> tuple[httpx.AsyncClient, Pool[ServedModel]]:
    kept = ResponseStore()
    pool: Pool[ServedModel] = Pool(Catalogue(ENTRIES, default="alpha"), lambda entry: FakeServed(entry, kept))
    own = ServerSettings(**settings)
    models = partial(Dispatcher, models=pool, max_body=own.max_body, autoload=autoload)
    app = create_app(FakeEngine(facts=None, state="loading"), own, models=models, kept=kept)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost"), pool


CHAT = {"messages": [{"role": "user", "content": "x"}]}


@pytest.mark.parametrize(
    "path, body, said",
    [
        ("/v1/completions", {"prompt": "x", "model": "beta"}, "beta"),
        ("/v1/completions", {"prompt": "x", "model": "gpt-4"}, "alpha"),
        ("/v1/completions", {"prompt": "x"}, "alpha"),
        ("/completion", {"prompt": "x", "model": "beta"}, "beta"),
        ("/v1/chat/completions", {**CHAT, "model": "beta"}, "beta"),
        ("/v1/messages", {**CHAT, "model": "beta", "max_tokens": 5}, "beta"),
        ("/v1/responses", {"input": "x", "model": "beta"}, "beta"),
        ("/v1/chat/completions", {**CHAT, "model": "beta", "stream": True}, "beta"),
    ],
)
async def test_the_named_model_answers(path: str, body: dict[str, Any], said: str) -> None:
    client, _ = web()
    async with client:
        reply = await client.post(path, json=body)
    assert reply.status_code == 200, reply.text
    assert f'"{said}"' in reply.text


async def test_errors_have_the_dialects_shape() -> None:
    client, _ = web()
    async with client:
        missing = await client.post("/v1/messages", json={**CHAT, "model": "nobody"})
        assert missing.status_code == 404 and missing.json()["type"] == "error"
        assert "alpha, beta" in missing.json()["error"]["message"]
        broken = await client.post("/completion", json={"prompt": "x", "model": "broken"})
        assert broken.status_code == 503 and "cut short" in broken.json()["error"]["message"]
        assert (await client.post("/completion", json={"prompt": "x", "model": "beta"})).status_code == 200
        garbage = await client.post("/completion", content=b'{"model": ')
        assert garbage.status_code == 400 and "not valid JSON" in garbage.json()["error"]["message"]
        deep = await client.post("/completion", content=b'{"prompt":' + b"[" * 100_000)
        assert deep.status_code == 400 and "levels deep" in deep.json()["error"]["message"]
        odd = await client.post("/completion", json={"prompt": "x", "model": 5})
        assert odd.status_code in (200, 400)
        assert (await client.post("/rerank", json={"query": "x", "documents": ["y"]})).status_code == 404


async def test_listing_loading_unloading() -> None:
    client, pool = web()
    async with client:
        assert (await client.get("/health")).json() == {"status": "ok"}
        states = {one["id"]: one["status"]["value"] for one in (await client.get("/v1/models")).json()["data"]}
        assert states == dict.fromkeys(["alpha", "beta", "vectors", "broken"], "unloaded")
        assert (await client.post("/models/load", json={"model": "beta"})).json() == {"success": True}
        one = (await client.get("/v1/models/beta")).json()
        assert one["status"] == {"value": "loaded"} and one["meta"]["n_ctx"] == 1024
        assert (await client.post("/models/load", json={"model": "broken"})).status_code == 503
        failed = (await client.get("/v1/models/broken")).json()["status"]
        assert failed["value"] == "failed" and failed["reason"] == "the file is cut short"
        assert (await client.post("/models/unload", json={"model": "beta"})).json() == {"success": True}
        assert pool.state(ENTRIES[1]).state == "unloaded"
        assert (await client.post("/models/load", json={"model": "none such"})).status_code == 404
        assert (await client.post("/models/load", json={})).json()["error"]["param"] == "model"
        metrics = (await client.get("/metrics")).text
        assert 'puna:model_loaded{model="beta"} 0' in metrics


async def test_looking_loads_nothing() -> None:
    client, pool = web()
    async with client:
        for path in ("/props", "/slots", "/lora-adapters"):
            reply = await client.get(path, params={"model": "beta"})
            assert reply.status_code == 503 and "not loaded" in reply.json()["error"]["message"]
        await client.post("/models/load", json={"model": "beta"})
        assert (await client.get("/props", params={"model": "beta"})).json()["model_alias"] == "beta"
    assert pool.loaded(ENTRIES[0]) is None


async def test_without_autoload_only_the_route_loads() -> None:
    client, _ = web(autoload=False)
    async with client:
        body = {"prompt": "x", "model": "beta"}
        assert (await client.post("/completion", json=body)).status_code == 503
        await client.post("/models/load", json={"model": "beta"})
        assert (await client.post("/completion", json=body)).status_code == 200


async def test_one_guard_for_all() -> None:
    client, _ = web(api_keys=("k",))
    async with client:
        body = {"prompt": "x", "model": "beta"}
        assert (await client.post("/completion", json=body)).status_code == 401
        assert (await client.post("/completion", json=body, headers={"x-api-key": "k"})).status_code == 200
        assert (await client.get("/models/sse")).status_code == 401
        assert (await client.get("/health")).status_code == 200
        assert (await client.get("/docs", headers={"x-api-key": "k"})).status_code == 200


def test_every_route_about_a_model_has_a_job() -> None:
    app = create_app(FakeEngine(), ServerSettings())
    free = {"/health", "/v1/health", "/models", "/v1/models", "/metrics", "/docs", "/openapi.json", "/"}
    free |= {"/docs/oauth2-redirect", "/v1/models/{name:path}", "/v1/models/{name}", "/v1/responses/{id}"}
    document = json.loads(json.dumps(app.openapi()))
    for path, operations in document["paths"].items():
        for method in operations:
            concrete = path.replace("{id}", "1").replace("{id_slot}", "1").replace("{slot}", "1")
            assert path in free or job_of(method.upper(), concrete) is not None, (method, path)


async def test_a_kept_reply_is_found_whichever_model_made_it_and_outlives_it() -> None:
    http, pool = web()
    async with http:
        first = (await http.post("/v1/responses", json={"input": "x", "model": "beta"})).json()
        await pool.unload(ENTRIES[1], grace=0)
        assert (await http.get(f"/v1/responses/{first['id']}")).json() == first
        asked = {"input": "y", "model": "alpha", "previous_response_id": first["id"]}
        assert (await http.post("/v1/responses", json=asked)).status_code == 200
        assert (await http.delete(f"/v1/responses/{first['id']}")).json()["deleted"] is True
        assert (await http.get(f"/v1/responses/{first['id']}")).status_code == 404
