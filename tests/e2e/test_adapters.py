"""LoRA adapters on a real server: scales that change, engines that die, files that are wrong."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import tiny
from tests.e2e.server import Server

VOCAB = tiny.spm_vocab()
LETTERS = ("Aa", "Bb")
"""What each adapter says."""

ROUTES: dict[str, dict[str, Any]] = {
    "/completion": {"prompt": "say"},
    "/infill": {"input_prefix": "say", "input_suffix": "it"},
    "/v1/completions": {"prompt": "say"},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "say"}]},
}


@pytest.fixture(scope="module")
def adapters(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    folder = tmp_path_factory.mktemp("lora")
    return tuple(
        tiny.write_lora(folder / f"{letters}.gguf", seed=n, says=(VOCAB.id(letters[0]), VOCAB.id(letters[1])), n_vocab=len(VOCAB))
        for n, letters in enumerate(LETTERS)
    )


@pytest.fixture(scope="module")
def server(tiny_llama: Path, adapters: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    flags = ("--lora", str(adapters[0]), "--lora-scaled", str(adapters[1]), "0", "-np", "4", "-c", "512", "-t", "1")
    with Server(tiny_llama, *flags, log=tmp_path_factory.mktemp("log") / "log") as running:
        yield running


@pytest.fixture(autouse=True)
def first_adapter(server: Server) -> None:
    assert server.json("/lora-adapters", [{"id": 0, "scale": 1}]) == {"success": True}


def scales(server: Server) -> list[float]:
    return [adapter["scale"] for adapter in server.get("/lora-adapters").json()]


def says(text: str, letters: str) -> bool:
    return bool(text) and set(text.replace(" ", "")) <= set(letters)


def ask(server: Server, prompt: str = "say", **fields: Any) -> str:
    body = {"prompt": prompt, "n_predict": 8, "temperature": 0, "ignore_eos": True, **fields}
    text: str = server.json("/completion", body)["content"]
    return text


@pytest.mark.parametrize("path", ROUTES)
def test_every_route_obeys_the_scales_and_the_request(server: Server, path: str) -> None:
    def text(**fields: Any) -> str:
        body = {**ROUTES[path], "max_tokens": 6, "temperature": 0, "ignore_eos": True, **fields}
        reply = server.json(path, body)
        if "choices" not in reply:
            return str(reply["content"])
        choice = reply["choices"][0]
        return str(choice["text"] if "text" in choice else choice["message"]["content"])

    assert says(text(), LETTERS[0])
    assert says(text(lora=[{"id": 1, "scale": 1.5}]), LETTERS[1])
    assert not says(text(lora=[{"id": 1, "scale": 0}]), "".join(LETTERS))
    server.json("/lora-adapters", [{"id": 1, "scale": 1}])
    assert says(text(), LETTERS[1])
    assert says(text(lora=[{"id": 0, "scale": 1}]), LETTERS[0])


def test_new_scales_leave_running_answers_alone(server: Server) -> None:
    body = {"prompt": "a running answer", "n_predict": 300, "temperature": 0, "ignore_eos": True}
    with server.stream("/completion", body) as frames:
        texts = [next(frames)["content"]]
        server.json("/lora-adapters", [{"id": 1, "scale": 1}])
        assert says(ask(server, "beside it"), LETTERS[1])
        texts += [frame["content"] for frame in frames]
    assert says("".join(texts), LETTERS[0])


def test_a_scale_without_bounds_is_the_callers_fault(server: Server) -> None:
    reply = server.post("/completion", {"prompt": "too much", "lora": [{"id": 0, "scale": 3e38}], "n_predict": 3})
    assert reply.status_code == 400
    assert "smaller scales" in reply.json()["error"]["message"]
    assert says(ask(server, "afterwards"), LETTERS[0])
    server.assert_alive()


def test_a_wrong_file_ends_the_start(tiny_llama: Path, tmp_path: Path) -> None:
    path = tmp_path / "none.gguf"
    server = Server(tiny_llama, "--control-vector", str(path), log=tmp_path / "log")
    try:
        server.start()
        assert server.process.wait(30) == 2
    finally:
        server.close()
    assert f"file at {path}" in server.log
    assert "Traceback" not in server.log


def test_sets_outlive_the_engine(server: Server) -> None:
    body = {"prompt": "to be continued", "n_predict": 400, "temperature": 0, "ignore_eos": True}
    server.json("/lora-adapters", [{"id": 1, "scale": 1}])
    with (
        server.stream("/completion", body) as first,
        server.stream("/completion", {**body, "lora": [{"id": 0, "scale": 1}]}) as second,
    ):
        texts = [[next(first)["content"]], [next(second)["content"]]]
        os.kill(server.worker_pids()[0], signal.SIGKILL)
        texts[0] += [frame["content"] for frame in first]
        texts[1] += [frame["content"] for frame in second]
    assert server.worker_pids() != [server.first_worker]
    assert says("".join(texts[0]), LETTERS[1])
    assert says("".join(texts[1]), LETTERS[0])
    assert scales(server) == [0.0, 1.0]
    assert says(ask(server), LETTERS[1])
