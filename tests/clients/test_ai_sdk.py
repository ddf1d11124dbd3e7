"""npm's `ai` with its OpenAI-compatible, OpenAI (chat and responses) and Anthropic providers; a Node process for each."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.live import ALL, Live, wait_until
from tests.clients.scenes import Stage

FOLDER = Path(__file__).parent / "node"
CHAT = "POST /v1/chat/completions"
PATHS = {"compatible": CHAT, "chat": CHAT, "responses": "POST /v1/responses", "anthropic": "POST /v1/messages"}


class Node:
    """A process that plays scenes, one after another."""

    def __init__(self, way: str, root: str) -> None:
        self.path = PATHS[way]
        self._process = subprocess.Popen(
            ["node", "turns.mjs", way, root], cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def play(self, kind: str, scene: str = "") -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        print(f"{kind}/{scene}", file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate(timeout=10)


@pytest.fixture(scope="module", params=PATHS)
def node(request: pytest.FixtureRequest, live: Live) -> Iterator[Node]:
    if shutil.which("node") is None:
        pytest.skip("there is no Node here")
    if not (FOLDER / "node_modules" / "ai").is_dir():
        if ALL:
            pytest.fail("npm's packages are not installed")
        pytest.skip("npm's packages are not installed; `make test-clients` does it")
    one = Node(request.param, live.root)
    yield one
    one.close()


def test_plain_and_streamed(live: Live, node: Node) -> None:
    with live.turns(*[f"{node.path} 200"] * 4):
        for scene, text in (("plain", "Hello world"), ("think", "Done.")):
            whole, streamed = node.play("whole", scene), node.play("stream", scene)
            assert whole["text"].strip() == streamed["text"].strip() == text, (whole, streamed)
            assert whole["finish"] == streamed["finish"] == "stop" and whole["usage"] > 0
            # OpenAI's own provider reads no thoughts from chat, and of responses only summaries.
            assert whole["reasoning"].strip() == streamed["reasoning"].strip()
            assert whole["reasoning"].strip() in ("", "let me see" if scene == "think" else "")


@pytest.mark.parametrize("kind", ["tools", "stream tools"])
@pytest.mark.parametrize("scene, cities", [("call then answer", ["Rome"]), ("two calls", ["Rome", "Oslo"])])
def test_it_calls_then_answers(live: Live, node: Node, kind: str, scene: str, cities: list[str]) -> None:
    with live.turns(f"{node.path} 200", f"{node.path} 200"):
        found = node.play(kind, scene)
    assert found["text"] == "It is sunny in Rome." and found["called"] == cities


def test_structured(live: Live, node: Node, stage: Stage) -> None:
    with live.turns(f"{node.path} 200"):
        found = node.play("object", "json call" if node.path == PATHS["anthropic"] else "city")
    assert found == {"value": {"city": "Rome", "degrees": 21}} and stage.last.constraint is not None


def test_overflow_and_failure(live: Live, node: Node) -> None:
    with live.turns(f"{node.path} 400"):
        told = node.play("whole", "overflow")["error"]
    assert "context size" in told or "prompt is too long" in told
    with live.turns(f"{node.path} 200", to_end=False):
        assert "the engine broke" in node.play("stream", "fail")["error"]


def test_who_leaves_ends_it(live: Live, node: Node, stage: Stage) -> None:
    with live.turns(f"{node.path} 200, client gone"):
        assert node.play("leave", "long") == {"aborted": True}
        wait_until(lambda: stage.scenes["long"][-1].closed, "the answer goes on")


@pytest.mark.parametrize("node", ["compatible"], indirect=True)
def test_embeddings(live: Live, node: Node) -> None:
    with live.turns("POST /v1/embeddings 200"):
        assert node.play("embed") == {"widths": [4, 4]}
