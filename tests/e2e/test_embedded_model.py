"""The default model, served as a user gets it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.dialects import CHAT, DIALECTS, forced
from tests.e2e.server import Server

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def server(embedded_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """No model is named: the embedded one is meant."""
    with Server(None, "-c", "1024", "-np", "4", log=tmp_path_factory.mktemp("server") / "log") as server:
        yield server
        server.stop()


def test_it_is_served_when_no_model_is_named(server: Server, embedded_model: Path) -> None:
    (model,) = server.get("/v1/models").json()["data"]
    assert "SmolLM2" in model["id"]
    assert server.get("/props").json()["model_path"] == str(embedded_model)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_it_knows_paris(server: Server, stream: bool) -> None:
    question = "What is the capital of France? Answer with one word."
    answer = CHAT.ask(server, question, stream=stream, temperature=0, max_tokens=24)
    assert "Paris" in answer.text
    assert answer.finish == "stop"


def test_text_with_every_kind_of_character_can_be_forced(server: Server) -> None:
    text = "naïve 漢字 😀👩\u200d👩\u200d👧 “quoted”\n\tend"
    for dialect in DIALECTS:
        assert dialect.ask(server, "x", stream=True, grammar=forced(text)).text == text


def test_concurrent_questions_get_their_own_answers(server: Server) -> None:
    capitals = {"France": "Paris", "Italy": "Rome", "Germany": "Berlin", "Spain": "Madrid", "Japan": "Tokyo", "England": "London"}

    def ask(country: str) -> str:
        question = f"What is the capital of {country}? Answer with one word."
        return CHAT.ask(server, question, stream=True, temperature=0, max_tokens=24).text

    with ThreadPoolExecutor(6) as pool:
        answers = dict(zip(capitals, pool.map(ask, capitals), strict=True))
    assert {country: capital in answers[country] for country, capital in capitals.items()} == dict.fromkeys(capitals, True)


def test_more_chats_than_slots_read_only_what_is_new(server: Server) -> None:
    """In turn, each after all others; of the answer before, the last token has never been computed."""
    chats = [[{"role": "user", "content": f"Tell me of {thing}."}] for thing in ("rain", "gold", "Rome", "bread", "chess")]
    known = [0] * len(chats)
    for turn in range(3):
        for number, chat in enumerate(chats):
            body = {"messages": chat, "max_tokens": 3, "temperature": 0, "ignore_eos": True}
            reply = server.json(CHAT.path, body)
            timings = reply["timings"]
            total = timings["cache_n"] + timings["prompt_n"]
            if turn:
                assert timings["prompt_n"] <= total - known[number] + 1
            known[number] = total + timings["predicted_n"]
            chat.append(reply["choices"][0]["message"])
            chat.append({"role": "user", "content": f"And {turn}?"})
