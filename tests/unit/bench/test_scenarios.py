from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from puna.bench import report, scenarios, watch
from puna.bench.client import Target
from puna.bench.runner import Outcome, measure, order
from puna.bench.scenarios import SCENARIOS, Failed, Scenario
from puna.bench.stats import METRICS
from tests.unit.bench.fake_server import FakeServer, whole

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


async def figures(name: str, server: FakeServer) -> dict[str, float]:
    return await BY_NAME[name].run(Target(server.url), (1, name, 0))


@pytest.mark.parametrize(("name", "n", "out"), [("one", 1, 128), ("streams8", 8, 128), ("streams16", 16, 128)])
async def test_streams_run_side_by_side_with_different_prompts(name: str, n: int, out: int) -> None:
    async with FakeServer().serve() as server:
        found = await figures(name, server)
    bodies = [body for _, body, _ in server.requests]
    assert server.most_running == len(bodies) == len({body["prompt"] for body in bodies}) == n
    assert all((body["max_tokens"], body["ignore_eos"], body["temperature"]) == (out, True, 0) for body in bodies)
    assert found["output_tokens"] == out
    assert {"tokens_s", "ttft_p50", "ttft_p99", "gap_p99", "wall", "cached"} <= found.keys()


async def test_context_is_read_cold_and_then_again() -> None:
    async with FakeServer().serve() as server:
        found = await figures("context16", server)
    asked = [body["prompt"] for _, body, _ in server.requests]
    assert len(asked) == 32
    assert sorted(asked[:16]) == sorted(asked[16:])
    assert found["prompt_tokens"] == 1000
    assert {"tokens_s", "cold_tokens_s", "cold_wall"} <= found.keys()


async def test_shared_clients_differ_in_their_question_alone_and_runs_in_the_prompt() -> None:
    async with FakeServer().serve() as server:
        await figures("shared16", server)
        first = [body["messages"] for _, body, _ in server.requests]
        await BY_NAME["shared16"].run(Target(server.url), (1, "shared16", 1))
    second = [body["messages"] for _, body, _ in server.requests[16:]]
    assert len({messages[0]["content"] for messages in first}) == 1
    assert len({messages[1]["content"] for messages in first}) == 16
    assert first[0][0]["content"].split()[:4] != second[0][0]["content"].split()[:4]


async def test_prefill_is_prompt_tokens_in_the_time_to_the_first() -> None:
    async with FakeServer(pause=0.01).serve() as server:
        found = await figures("prefill", server)
    assert found["prompt_tokens"] == 2000
    assert found["prompt_tokens_s"] == pytest.approx(2000 / (found["ttft_p50"] / 1000))


async def test_a_server_without_counts_is_measured_by_words() -> None:
    async with FakeServer(usage=False).serve() as server:
        assert (await figures("prefill", server))["prompt_tokens"] == 2000


async def test_chats_come_back_with_their_history() -> None:
    async with FakeServer(cached=10).serve() as server:
        found = await figures("chats24", server)
    turns = [len(body["messages"]) for _, body, _ in server.requests]
    assert turns == [1] * 24 + [3] * 24 + [5] * 24
    assert server.most_running == 1
    last, before = server.requests[-1][1]["messages"], server.requests[-25][1]["messages"]
    assert last[:3] == before
    assert last[3]["content"].startswith("w0 w1")
    assert 0 < found["cached"] < 100


async def test_interference_watches_running_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "QUIET", 0.2)
    async with FakeServer(pause=0.005).serve() as server:
        found = await figures("interference", server)
    assert server.most_running == 5
    assert found["gap_growth"] == pytest.approx(found["busy_gap_p99"] / found["quiet_gap_p99"])
    assert found["quiet_gap_p99"] >= 5


async def test_interference_needs_streams_that_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "QUIET", 0.2)
    async with FakeServer(most_tokens=20).serve() as server:
        with pytest.raises(Failed, match="a background stream ended early"):
            await figures("interference", server)


async def test_a_failing_request_fails_the_run() -> None:
    reply = 503, {"Content-Length": "2"}, [b"no"]
    async with FakeServer(fail=lambda path: reply).serve() as server:
        with pytest.raises(Failed, match="8 of 8 requests failed: HTTP 503: no"):
            await figures("streams8", server)


async def test_servers_take_turns_and_errors_do_not_end_the_others() -> None:
    said: list[str] = []
    tiny = Scenario("tiny", "", scenarios.streams(1, 5, 3))
    async with FakeServer().serve() as good, FakeServer(fail=lambda path: (500, {"Content-Length": "1"}, [b"x"])).serve() as bad:
        targets = [Target(good.url), Target(bad.url)]
        outcomes = await measure(targets, [tiny], runs=2, seed=3, watched=[os.getpid()], progress=said.append)
    assert said[2:] == [f"tiny, run {run}, {url}" for run, url in [(1, good.url), (1, bad.url), (2, bad.url), (2, good.url)]]
    assert len(outcomes["tiny"][good.url].runs) == 2
    assert "cpu" in outcomes["tiny"][good.url].figures
    assert outcomes["tiny"][bad.url] == Outcome(runs=[], errors=["1 of 1 requests failed: HTTP 500: x"] * 2)
    prompts = [[body["prompt"] for _, body, _ in server.requests[1:]] for server in (good, bad)]
    assert prompts[0] == prompts[1]
    assert prompts[0][0] != prompts[0][1]


def test_the_first_one_changes_from_run_to_run() -> None:
    a, b, c = (Target(f"http://x:{port}") for port in (1, 2, 3))
    assert [order([a, b, c], run) for run in range(3)] == [[a, b, c], [b, c, a], [c, a, b]]


def test_tables_and_data() -> None:
    one = Outcome(runs=[{"tokens_s": 100.0, "ttft_p50": 12.3, "cached": 50.0}])
    two = Outcome(runs=[{"tokens_s": 150.0}, {"tokens_s": 170.0}], errors=["[Errno 1] gone"])
    console = Console(file=io.StringIO(), width=120)
    console.print(report.table(BY_NAME["one"], {"a": one, "b": two}, ["a", "b"]))
    text = console.file.getvalue() if isinstance(console.file, io.StringIO) else ""
    assert "160.0" in text
    assert "1.60" in text
    assert "12 ms" in text
    assert "50%" in text
    assert "1: [Errno 1] gone" in text
    data = report.as_data({"one": {"a": one, "b": two}}, ["a", "b"], {"runs": 2})
    assert data["scenarios"]["one"]["b"]["ratio"] == {"tokens_s": 1.6}
    assert data["scenarios"]["one"]["b"]["errors"] == ["[Errno 1] gone"]
    assert data["servers"] == ["a", "b"]


def test_every_figure_of_a_scenario_has_a_name_in_the_table() -> None:
    assert all(metric.label for metric in METRICS.values())
    assert len({metric.label for metric in METRICS.values()}) == len(METRICS)


def test_usage_of_a_process(tmp_path: Path) -> None:
    own = watch.usage(os.getpid())
    assert own is not None
    assert own.cpu_seconds > 0
    assert 1e6 < own.memory < 1e10
    assert watch.usage(os.getpid(), tmp_path) is None
    earlier = watch.Usage(at=own.at - 2.0, cpu_seconds=own.cpu_seconds - 1.0, memory=1)
    assert watch.between(earlier, own)["cpu"] == pytest.approx(50.0)
    assert watch.between(None, own) == {}


async def test_embeddings_come_from_eight_clients_one_by_one_and_in_lists() -> None:
    async with FakeServer(pause=0.002).serve() as server:
        found = await figures("embeddings", server)
    inputs = [body["input"] for _, body, _ in server.requests]
    assert {path for path, _, _ in server.requests} == {"/v1/embeddings"}
    assert server.most_running >= 8  # the server lets go of a request a little after its client has the reply
    assert len({text for one in inputs for text in ([one] if isinstance(one, str) else one)}) == 128
    assert all(len(one.split()) == 24 for one in inputs[:64]) and [len(one) for one in inputs[64:]] == [8] * 8
    assert found["texts_s"] == pytest.approx(64 / found["wall"])
    assert {"listed_texts_s", "reply_p50", "reply_p99"} <= found.keys()


async def test_a_ranking_has_every_document() -> None:
    async with FakeServer().serve() as server:
        found = await figures("rerank", server)
    ((path, body, _),) = server.requests
    assert path == "/v1/rerank" and len(set(body["documents"])) == 100 and body["query"]
    assert found["documents_s"] == pytest.approx(100 / found["wall"])


@pytest.mark.parametrize(
    ("name", "server", "reason"),
    [
        ("embeddings", FakeServer(fail=lambda _path: whole({"data": []})), "no 1 vectors"),
        ("embeddings", FakeServer(fail=lambda _path: whole({"data": [{"embedding": [1, 1, 1]}]})), "no 1 vectors"),
        ("embeddings", FakeServer(fail=lambda _path: whole([1])), "no 1 vectors"),
        ("embeddings", FakeServer(fail=lambda _path: (501, {}, [b'{"error": {"message": "cannot"}}'])), "HTTP 501: cannot"),
        ("embeddings", FakeServer(fail=lambda _path: (200, {}, [b"no JSON"])), "not JSON"),
        ("rerank", FakeServer(lost_documents=1), "not every document"),
        ("rerank", FakeServer(fail=lambda _path: whole([1])), "not every document"),
    ],
)
async def test_bad_vectors_and_rankings_are_failures(name: str, server: FakeServer, reason: str) -> None:
    async with server.serve():
        with pytest.raises(Failed, match=reason):
            await figures(name, server)


async def test_drafts_are_compared_with_none_on_the_same_prompts() -> None:
    async with FakeServer().serve() as server:
        found = await figures("drafts", server)
    bodies = [body for _, body, _ in server.requests]
    assert [body.get("speculative.type") for body in bodies] == [None, "none", "auto"] * 2
    assert [body["max_tokens"] for body in bodies] == [1, 400, 400, 1, 160, 160]
    for three in (bodies[:3], bodies[3:]):
        assert len({body["prompt"] for body in three}) == 1
    for name in ("edit", "free"):
        assert found[f"{name}_gain"] == found[f"drafted_{name}_tokens_s"] / found[f"plain_{name}_tokens_s"]
