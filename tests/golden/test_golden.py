"""Each adapter against its golden files: a request, what the turn's neutral events are, and the exact bytes of the reply.

`DIALECT/SCENE.json` has the path, the body, what the model says and the events; `SCENE.whole` and `SCENE.stream` are the
replies, with time and random ids frozen. With `PUNA_TEST_REWRITE=1` in the environment events and replies are written anew,
to be read in the diff; a new scene needs its path, body and what is said only.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from puna.errors import ServerFault
from puna.service.chat_run import ChatRun
from puna.service.service import BUILD
from puna.types import Chunk
from tests.fakes import FACTS, FakeEngine, Item, say
from tests.unit.api.test_anthropic import TEMPLATE
from tests.web import client

FOLDER = Path(__file__).parent
SCENES = sorted(FOLDER.glob("*/*.json"))
CASES = [
    (file, way) for file in SCENES for way in ("whole", "stream") if way == "whole" or "said" in json.loads(file.read_text())
]
REWRITE = "PUNA_TEST_REWRITE" in os.environ
CHAT_DIALECTS = ("chat", "messages", "responses")
NOW = 1_750_000_000


@pytest.fixture(autouse=True)
def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time stands still, and what would be random counts up."""
    numbers = count(1)
    monkeypatch.setattr(time, "time", lambda: NOW)
    monkeypatch.setattr(secrets, "token_hex", lambda n=8: f"{next(numbers):0{2 * n}x}")
    monkeypatch.setattr(secrets, "token_urlsafe", lambda n=8: f"{next(numbers):0{n}d}")
    monkeypatch.setattr(secrets, "token_bytes", lambda n=8: next(numbers).to_bytes(n, "little"))


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the turn's parser makes of the output, as it comes."""
    found: list[Any] = []
    step = ChatRun.__anext__

    async def watched(self: ChatRun) -> Any:
        batch = await step(self)
        found.extend(msgspec.to_builtins(event) for _, events, _ in batch for event in events)
        return batch

    monkeypatch.setattr(ChatRun, "__anext__", watched)
    return found


def engine(scene: dict[str, Any], dialect: str) -> FakeEngine:
    facts = msgspec.structs.replace(FACTS, chat_template=TEMPLATE, n_ctx=4096)
    if dialect in ("embeddings", "rerank"):
        pooled = {"embeddings": ("mean", 4), "rerank": ("rank", 1)}[dialect]
        facts = msgspec.structs.replace(FACTS, pooling=pooled[0], n_embd_out=pooled[1], n_ctx_pooled=64, has_decoder=False)
        if dialect == "rerank":
            return FakeEngine(facts=facts, vector=lambda tokens: [float(tokens[-1] - 97)])
        return FakeEngine(facts=facts)

    def script(_number: int) -> Iterator[Item]:
        items = say(*scene["said"], stop_type=scene.get("stop_type", "eos"), probs=scene.get("probs", False))
        for item in items:
            if "fails" in scene and isinstance(item, Chunk) and item.stop_type != "none":
                yield ServerFault(scene["fails"])
            yield item

    return FakeEngine(facts=facts, script=script)


def hold(path: Path, found: bytes) -> None:
    if REWRITE:
        path.write_bytes(found)
    assert path.read_bytes() == found


@pytest.mark.parametrize("file, way", CASES, ids=[f"{file.parent.name}-{file.stem}-{way}" for file, way in CASES])
async def test_bytes(file: Path, way: str, events: list[Any]) -> None:
    dialect = file.parent.name
    scene = json.loads(file.read_text())
    body = {**scene["body"], "stream": True} if way == "stream" else scene["body"]
    async with client(engine(scene, dialect)) as web:
        reply = await web.post(scene["path"], json=body)
    assert reply.headers["content-type"].startswith("text/event-stream" if way == "stream" else "application/json")
    hold(file.with_suffix("." + way), reply.content.replace(BUILD.encode(), b"puna-VERSION"))
    if dialect in CHAT_DIALECTS:
        if REWRITE:
            file.write_text(json.dumps({**scene, "events": events}, indent=2) + "\n")
            scene["events"] = events
        assert scene["events"] == events


@pytest.mark.parametrize("name", sorted({file.stem for file in SCENES if file.parent.name in CHAT_DIALECTS}))
def test_all_dialects_read_the_same_events(name: str) -> None:
    scenes = [json.loads((FOLDER / dialect / f"{name}.json").read_text()) for dialect in CHAT_DIALECTS]
    bare = [[{key: value for key, value in event.items() if key != "id"} for event in scene["events"]] for scene in scenes]
    assert bare[0] == bare[1] == bare[2] and (bare[0] or not scenes[0]["said"])
