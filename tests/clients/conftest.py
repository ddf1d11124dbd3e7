"""The servers that all clients ask, and an environment that lets none of them go anywhere else."""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec
import pytest

from tests.clients.live import Live
from tests.clients.scenes import Stage
from tests.fakes import FACTS, FakeEngine

QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
    "LANGSMITH_TRACING": "false",
    "HF_HUB_OFFLINE": "1",
    "NO_PROXY": "127.0.0.1",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What clients warn of is theirs."""
    for item in items:
        if "tests/clients/" in item.nodeid:
            item.add_marker(pytest.mark.filterwarnings("ignore"))


@pytest.fixture(scope="session")
def live() -> Iterator[Live]:
    """Generates, and embeds."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in QUIET.items():
            patch.setenv(name, value)
        with Live(Stage()) as server:
            yield server


@pytest.fixture(scope="session")
def ranking() -> Iterator[Live]:
    """Ranks."""
    facts = msgspec.structs.replace(FACTS, pooling="rank", n_embd_out=1, n_ctx_pooled=64, has_decoder=False)
    with Live(FakeEngine(facts=facts, vector=lambda tokens: [float(tokens[-1] - 97)])) as server:
        yield server


@pytest.fixture
def stage(live: Live) -> Stage:
    """The engine behind `live`."""
    assert isinstance(live.engine, Stage)
    return live.engine


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch, clean_environment: None) -> None:
    """Keys that clients insist on; nothing else of the environment counts."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "COHERE_API_KEY"):
        monkeypatch.setenv(name, "x")
    for name in list(os.environ):
        if name.lower().endswith("_proxy") and name != "NO_PROXY":
            monkeypatch.delenv(name)
