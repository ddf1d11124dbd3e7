from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from puna.bench.scenarios import SCENARIOS
from puna.cli import bench, main
from puna.errors import StartupError
from tests.unit.bench.fake_server import FakeServer


@pytest.fixture
def server() -> Iterator[FakeServer]:
    """A fake server in another thread, since the command runs its own event loop."""
    fake = FakeServer()
    ready = threading.Event()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        async with fake.serve():
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(5)
    yield fake
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


def test_a_table_and_a_file(server: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "out.json"
    assert main(["bench", server.url, "--runs", "2", "--scenario", "one,prefill", "--json", str(file), "--seed", "5"]) == 0
    output = capsys.readouterr().out
    assert "one: one stream" in output
    assert "prefill: 2,000 tokens" in output
    data = json.loads(file.read_text())
    assert data["options"] == {"runs": 2, "seed": 5, "scenarios": ["one", "prefill"]}
    assert len(data["scenarios"]["one"][server.url]["runs"]) == 2


def test_failed_runs_show_in_the_exit_code(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.fail = lambda path: None if path.endswith("models") else (500, {"Content-Length": "4"}, [b"oops"])
    assert main(["bench", server.url, "--runs", "1", "--scenario", "one"]) == 1
    assert "HTTP 500: oops" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["http://127.0.0.1:9"], "does not answer"),
        (["http://x", "http://x/v1"], "each server can be named once"),
        (["x", "--scenario", "dance"], "--scenario: there is no 'dance'; there are one, streams8"),
        (["ftp://x"], "is not the address of a server"),
    ],
)
def test_wrong_calls_end_with_a_message(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_an_unwritable_file(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", server.url, "--runs", "1", "--scenario", "one", "--json", "/no/such/folder/x.json"]) == 2
    captured = capsys.readouterr()
    assert "tokens/s" in captured.out
    assert "--json: cannot write /no/such/folder/x.json: No such file or directory" in captured.err


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench"]) == 2
    assert main(["bench", "--help"]) == 0
    text = capsys.readouterr().out
    assert all(scenario.name in text for scenario in SCENARIOS)
    assert main(["bench", "x", "--runs", "0"]) == 2


def test_chosen_scenarios_keep_their_order() -> None:
    assert [scenario.name for scenario in bench.chosen(["prefill, one", "chats24"])] == ["one", "prefill", "chats24"]
    assert [scenario.name for scenario in SCENARIOS if scenario not in bench.chosen([])] == ["embeddings", "rerank"]
    assert [scenario.name for scenario in bench.chosen(["rerank,one"])] == ["one", "rerank"]
    with pytest.raises(StartupError):
        bench.chosen(["x"])
