"""The `llm` command's package, with a model from its file of OpenAI-compatible ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.clients.live import Live, need
from tests.clients.scenes import Stage

CHAT = "POST /v1/chat/completions"
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "degrees": {"type": "integer"}},
    "required": ["city", "degrees"],
}


@pytest.fixture
def models(live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    common = f"  api_base: {live.url}\n  model_name: m\n  api_key_name: x\n"
    text = f"- model_id: chat\n{common}  supports_tools: true\n  supports_schema: true\n"
    text += f"- model_id: text\n{common}  completion: true\n"
    (tmp_path / "extra-openai-models.yaml").write_text(text)
    (tmp_path / "keys.json").write_text('{"x": "k"}')
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path))
    llm = need("llm")
    return {name: llm.get_model(name) for name in ("chat", "text")}


@pytest.mark.parametrize("stream", [False, True])
def test_plain(live: Live, models: dict[str, Any], stream: bool) -> None:
    with live.turns(f"{CHAT} 200", "POST /v1/completions 200"):
        assert models["chat"].prompt("play: plain", stream=stream).text() == "Hello world"
        assert models["text"].prompt("play: plain", stream=stream).text() == "Hello world"


@pytest.mark.parametrize("scene, n", [("call then answer", 1), ("two calls", 2)])
@pytest.mark.parametrize("stream", [False, True])
def test_it_calls_then_answers(live: Live, models: dict[str, Any], scene: str, n: int, stream: bool) -> None:
    called: list[str] = []

    def weather(city: str) -> str:
        """Tells the weather."""
        called.append(city)
        return "sunny"

    with live.turns(f"{CHAT} 200", f"{CHAT} 200"):
        text = models["chat"].chain(f"play: {scene}", tools=[weather], stream=stream).text()
    assert text == "It is sunny in Rome." and called == ["Rome", "Oslo"][:n]


def test_structured(live: Live, models: dict[str, Any], stage: Stage) -> None:
    with live.turns(f"{CHAT} 200"):
        assert models["chat"].prompt("play: city", schema=SCHEMA).text() == '{"city":"Rome","degrees":21}'
    assert stage.last.constraint is not None


def test_overflow_and_failure(live: Live, models: dict[str, Any]) -> None:
    with live.turns(f"{CHAT} 400"), pytest.raises(Exception, match="available context size"):
        models["chat"].prompt("play: overflow").text()
    with live.turns(f"{CHAT} 200", to_end=False), pytest.raises(Exception, match="the engine broke"):
        models["chat"].prompt("play: fail", stream=True).text()
