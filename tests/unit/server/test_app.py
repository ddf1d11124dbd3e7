"""The app as a whole: its document, its page, its log, its metrics."""

from __future__ import annotations

import gc
import json
import logging
import re
import weakref

import pytest
from prometheus_client.parser import text_string_to_metric_families

from puna.config import ServerSettings
from puna.server.app import create_inner_app
from puna.types import EngineStats
from tests.fakes import FakeEngine, say
from tests.web import client


async def test_the_documentation_needs_nothing_from_elsewhere() -> None:
    async with client() as http:
        page = await http.get("/docs")
        assert page.status_code == 200
        needed = re.findall(r'(?:src|href)="([^"]+)"', page.text)
        assert len(needed) >= 3 and all(url.startswith("/docs/files/") for url in needed)
        for url in needed:
            assert (await http.get(url)).status_code == 200
        assert (await http.get("/docs/files/../app.py")).status_code == 404


async def test_the_document_describes_every_body() -> None:
    async with client() as http:
        document = (await http.get("/openapi.json")).json()
    posts = {path: methods["post"] for path, methods in document["paths"].items() if "post" in methods}
    assert {"/completion", "/completions", "/tokenize", "/detokenize", "/apply-template"} <= set(posts)
    assert {"/v1/completions", "/v1/chat/completions", "/chat/completions"} <= set(posts)
    schemas = document["components"]["schemas"]
    for operation in posts.values():
        reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        assert reference.removeprefix("#/components/schemas/") in schemas
    properties = schemas["ChatCompletionRequest"]["properties"]
    assert {"messages", "temperature", "logit_bias", "grammar", "stream_options", "top_logprobs"} <= set(properties)
    text = json.dumps(document)
    for name in set(re.findall(r'"#/components/schemas/([^"]+)"', text)):
        assert name in schemas
    assert "#/$defs" not in text
    ids = [operation["operationId"] for methods in document["paths"].values() for operation in methods.values()]
    assert len(ids) == len(set(ids))


async def test_the_page_is_whole_in_itself() -> None:
    async with client() as http:
        reply = await http.get("/")
    assert reply.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    html = reply.text
    assert html.startswith("<!doctype html>") and len(html.splitlines()) < 200
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!data:)""", html) and "//" not in re.sub(
        r"http://www\.w3\.org\S*", "", html
    )
    assert "v1/chat/completions" in html and "innerHTML" not in html


async def test_requests_are_logged_when_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="puna")
    async with client(request_log=True, api_keys=("secret-key",)) as http:
        await http.post("/completion?key=secret-key", json={"prompt": "quagga"}, headers={"X-Api-Key": "secret-key"})
        await http.get("/pro%0aps")
    lines = [record.getMessage() for record in caplog.records]
    assert re.fullmatch(r"POST /completion 200 \d+ ms", lines[0])
    assert re.fullmatch(r"GET /pro\\nps 401 \d+ ms", lines[1])
    assert "quagga" not in caplog.text and "secret-key" not in caplog.text


async def test_requests_are_not_logged_otherwise(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="puna")
    async with client() as http:
        await http.get("/health")
    assert caplog.records == []


async def metrics(engine: FakeEngine, *bodies: dict[str, object]) -> dict[str, float]:
    async with client(engine) as http:
        for body in bodies:
            assert (await http.post("/completion", json=body)).status_code == 200
        reply = await http.get("/metrics")
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert reply.headers["process-start-time-unix"].isdecimal()
    families = text_string_to_metric_families(reply.text)
    return {sample.name: sample.value for family in families for sample in family.samples if not sample.labels}


async def test_metrics_keep_their_names() -> None:
    stats = EngineStats(
        n_running=2, n_waiting=1, n_decode=10, n_busy_slots=25, prompt_tokens=100, prompt_ms=500.0, predicted_tokens=40,
        predicted_ms=2000.0, n_tokens_max=77, cache_tokens=9,
    )  # fmt: skip
    found = await metrics(FakeEngine(stats=stats, restarts=3))
    expected = {
        "prompt_tokens_total": 100,
        "prompt_tokens_cached_total": 9,
        "prompt_seconds_total": 0.5,
        "tokens_predicted_total": 40,
        "tokens_predicted_seconds_total": 2,
        "n_decode_total": 10,
        "n_tokens_max": 77,
        "n_busy_slots_per_decode": 2.5,
        "prompt_tokens_seconds": 200,
        "predicted_tokens_seconds": 20,
        "requests_processing": 2,
        "requests_deferred": 1,
    }
    assert {name: found[f"llamacpp:{name}"] for name in expected} == expected
    assert found["puna:engine_restarts_total"] == 3


async def test_drafts_are_counted_by_their_place() -> None:
    engine = FakeEngine(stats=EngineStats(drafted=(9, 7, 4), draft_accepted=(6, 3, 0)))
    found = await metrics(engine)
    names = ("num_draft_tokens", "num_accepted_tokens", "num_drafts")
    assert [found[f"llamacpp:spec_decode_{name}_total"] for name in names] == [20, 9, 9]
    async with client(engine) as http:
        lines = (await http.get("/metrics")).text.splitlines()
    for name, counts in (("drafted_tokens", (9, 7, 4)), ("draft_accepted_tokens", (6, 3, 0))):
        for place, count in enumerate(counts, 1):
            assert f'puna:{name}_total{{position="{place}"}} {count}.0' in lines


async def test_histograms_count_generations() -> None:
    engine = FakeEngine(script=lambda _: say("abcd", n_prompt=8, cache_n=2))
    found = await metrics(engine, {"prompt": "x"}, {"prompt": "x", "n": 2})
    names = ("queue_seconds", "time_to_first_token_seconds", "time_per_output_token_seconds", "cached_ratio")
    assert all(found[f"puna:{name}_count"] == 3 for name in names)
    assert found["puna:queue_seconds_sum"] == pytest.approx(0.003)
    assert found["puna:time_per_output_token_seconds_sum"] == pytest.approx(0.003)
    assert found["puna:cached_ratio_sum"] == pytest.approx(0.75)


async def test_metrics_can_be_turned_off() -> None:
    async with client(metrics_endpoint=False) as http:
        assert (await http.get("/metrics")).status_code == 501


def test_an_app_that_is_gone_keeps_nothing_of_its_model() -> None:
    app = create_inner_app(FakeEngine(), ServerSettings())
    service = weakref.ref(app.state.service)
    assert service() is not None
    del app
    gc.collect()
    assert service() is None
