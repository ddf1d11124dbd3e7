"""Drafts as users get them: the embedded model guesses for itself, which is always right where nothing is left to chance."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.dialects import CHAT
from tests.e2e.server import Server

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def server(embedded_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    flags = ("-c", "1024", "-np", "2", "-md", str(embedded_model), "--draft-max", "4", "--no-draft-adaptive")
    with Server(None, *flags, log=tmp_path_factory.mktemp("server") / "log") as server:
        yield server
        server.stop()


def positions(server: Server, name: str) -> list[float]:
    """A metric's values by place."""
    found = re.findall(rf'^{name}{{position="(\d+)"}} (\S+)$', server.get("/metrics").text, re.MULTILINE)
    assert [int(place) for place, _ in found] == list(range(1, len(found) + 1))
    return [float(value) for _, value in found]


def test_a_model_that_guesses_for_itself_is_mostly_right(server: Server) -> None:
    question = "What is the capital of France? Answer with one word."
    answer = CHAT.ask(server, question, stream=True, temperature=0, max_tokens=24)
    assert "Paris" in answer.text
    body = {"prompt": "The days of the week are", "n_predict": 24, "temperature": 0, "n_probs": 2, "ignore_eos": True}
    reply = server.json("/completion", body)
    timings: dict[str, Any] = reply["timings"]
    assert len(reply["completion_probabilities"]) == timings["predicted_n"] == 24
    assert all(one["id"] == one["top_logprobs"][0]["id"] for one in reply["completion_probabilities"])
    assert 8 <= timings["draft_n_accepted"] <= timings["draft_n"]
    assert reply["generation_settings"]["speculative.types"] == "draft"
    drafted, accepted = (positions(server, f"puna:{what}_tokens_total") for what in ("drafted", "draft_accepted"))
    assert len(drafted) == len(accepted) == 4
    assert drafted == sorted(drafted, reverse=True)
    assert all(0 < right <= n for right, n in zip(accepted, drafted, strict=True))
    assert sum(accepted) > 0.6 * sum(drafted)
    plain = server.json("/completion", {**body, "n_probs": 0, "speculative.type": "none"})
    assert "draft_n" not in plain["timings"]


def test_an_answer_goes_on_when_the_worker_is_killed(server: Server) -> None:
    letters = 'root ::= ("a" [xy] "c" [xy]){24} "end"'
    body = {"prompt": "Letters:", "grammar": letters, "temperature": 0, "n_predict": 200}
    (worker,) = server.worker_pids()
    with server.stream("/completion", body) as frames:
        seen = [next(frames), next(frames)]
        os.kill(worker, signal.SIGKILL)
        seen += frames
    assert re.fullmatch("(a[xy]c[xy]){24}end", "".join(frame["content"] for frame in seen))
    assert seen[-1]["stop_type"] == "eos"
    assert seen[-1]["timings"]["draft_n_accepted"] > 0
