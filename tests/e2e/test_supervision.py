"""Deaths of every kind: of the worker, of the server, of the model file."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from gguf import GGUFWriter

from tests.e2e.conftest import ServerMaker
from tests.e2e.dialects import CHAT, DIALECTS, NATIVE, forced
from tests.e2e.server import Server, running, wait_until
from tests.e2e.sse import join_text

N_LINES = 24
# Each line has one free letter, so the text takes many steps; its numbers show every repetition and every gap.
NUMBERED = "root ::= " + " ".join(f'"{i:03d}" [a-z] "\\n"' for i in range(N_LINES))


def is_numbered(text: str) -> bool:
    """Whether it is the whole text of `NUMBERED`, to the last byte."""
    return bool(re.fullmatch("".join(f"{i:03d}[a-z]\n" for i in range(N_LINES)), text))


def test_every_stream_goes_on_when_the_worker_is_killed(slow_llama: Path, make_server: ServerMaker) -> None:
    server = make_server(slow_llama, "-c", "2048", "-np", "8", "-t", "1")
    started = threading.Barrier(9)
    forced_text = "".join(f"{i} 漢😀 " for i in range(40))

    def run(number: int) -> tuple[str, list[Any]]:
        dialect = DIALECTS[number % 3]
        grammar = forced(forced_text) if number == 7 else NUMBERED
        body = dialect.body(f"client {number}", grammar=grammar, temperature=1.0, seed=number)
        with server.stream(dialect.path, body) as frames:
            seen = [next(frames)]
            started.wait(30)
            seen += frames
        return join_text(seen), seen

    with ThreadPoolExecutor(8) as pool:
        results = [pool.submit(run, number) for number in range(8)]
        started.wait(30)
        os.kill(server.first_worker, signal.SIGKILL)
        texts = [result.result(60) for result in results]
    for number, (text, frames) in enumerate(texts):
        assert not any("error" in frame for frame in frames)
        assert text == forced_text if number == 7 else is_numbered(text), (number, text)
    (worker,) = server.worker_pids()
    assert worker != server.first_worker
    assert server.json("/completion", {"prompt": "x", "n_predict": 1})["tokens_predicted"] == 1
    server.stop()


def test_whole_replies_and_waiting_requests_survive_too(slow_llama: Path, make_server: ServerMaker) -> None:
    server = make_server(slow_llama, "-c", "2048", "-np", "2", "-t", "1")

    def run(number: int) -> str:
        dialect = DIALECTS[number % 3]
        return dialect.ask(
            server, f"client {number}", stream=number % 2 == 0, grammar=NUMBERED, temperature=1.0, seed=number
        ).text

    with ThreadPoolExecutor(6) as pool:
        results = [pool.submit(run, number) for number in range(6)]
        server.wait_busy(2)
        os.kill(server.first_worker, signal.SIGKILL)
        assert all(is_numbered(result.result(60)) for result in results)


def test_usage_and_limits_count_what_came_before_the_death(slow_llama: Path, make_server: ServerMaker) -> None:
    server = make_server(slow_llama, "-c", "2048", "-np", "1", "-t", "1")
    body = NATIVE.body("x", n_predict=150, ignore_eos=True, return_tokens=True)
    with server.stream("/completion", body) as frames:
        seen = [next(frames) for _ in range(20)]
        os.kill(server.first_worker, signal.SIGKILL)
        seen += frames
    assert seen[-1]["tokens_predicted"] == 150
    assert seen[-1]["stop_type"] == "limit"
    assert sum(len(frame["tokens"]) for frame in seen[:-1]) in (150, 150 - len(seen[-1]["tokens"]))


def test_a_request_that_kills_the_worker_again_and_again_is_given_up(slow_llama: Path, make_server: ServerMaker) -> None:
    server = make_server(slow_llama, "-c", "2048", "-np", "1", "-t", "1")
    killed: list[int] = []
    with server.stream("/completion", NATIVE.body("x", n_predict=2000, ignore_eos=True)) as frames:
        for frame in frames:
            if "error" in frame:
                break
            for worker in server.worker_pids():
                if worker not in killed:
                    killed.append(worker)
                    os.kill(worker, signal.SIGSEGV)
    assert frame["error"]["type"] == "server_error" and frame["error"]["code"] == 500
    assert 2 <= len(killed) <= 12
    assert server.json("/completion", NATIVE.body("y", grammar=forced("others go on")))["content"] == "others go on"


def test_requests_that_come_while_the_worker_restarts_are_served(tiny_llama: Path, make_server: ServerMaker) -> None:
    server = make_server(tiny_llama, "-c", "512", "-np", "2", "-t", "1")
    os.kill(server.first_worker, signal.SIGKILL)
    end = time.monotonic() + 20
    while (reply := server.post("/completion", NATIVE.body("x", grammar=forced("back")))).status_code == 503:
        assert reply.headers["retry-after"]
        assert time.monotonic() < end
        time.sleep(0.05)
    assert reply.json()["content"] == "back"
    wait_until(lambda: server.worker_pids() not in ([], [server.first_worker]), 5, "no new worker")


def test_a_worker_that_stops_by_itself_is_replaced(tiny_llama: Path, make_server: ServerMaker) -> None:
    server = make_server(tiny_llama, "-c", "512", "-np", "2", "-t", "1")
    for deadly in (signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM):
        (worker,) = server.worker_pids()
        os.kill(worker, deadly)
        wait_until(lambda worker=worker: worker not in server.worker_pids(), 10, "the worker lives on")
        wait_until(lambda: server.worker_pids() and server.healthy(), 20, "no new worker")
        assert server.json("/completion", NATIVE.body("x", grammar=forced("back")))["content"] == "back"


def refuses_new_work(server: Server) -> None:
    """New work during a drain is refused: with 503, or because nobody listens any more."""
    try:
        reply = server.post("/completion", {"prompt": "late", "n_predict": 1}, timeout=5)
    except httpx.TransportError:
        return
    assert reply.status_code == 503
    assert reply.json()["error"]["type"] == "unavailable_error"


def test_sigterm_lets_running_answers_finish(slow_llama: Path, make_server: ServerMaker) -> None:
    server = make_server(slow_llama, "-c", "2048", "-np", "2", "-t", "1")
    with server.stream("/completion", NATIVE.body("x", grammar=NUMBERED, temperature=1.0)) as frames:
        seen = [next(frames)]
        server.worker_pids()
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        refuses_new_work(server)
        seen += frames
    assert is_numbered(join_text(seen))
    assert server.process.wait(15) == 0
    server.wait_gone()


def test_an_answer_that_outlasts_the_grace_period_ends_with_an_error(slow_llama: Path, make_server: ServerMaker) -> None:
    server = make_server(slow_llama, "-c", "8192", "-np", "1", "-t", "1", "--drain-timeout", "1")
    with server.stream("/v1/chat/completions", CHAT.body("x", max_tokens=8000, ignore_eos=True)) as frames:
        seen = [next(frames)]
        server.worker_pids()
        server.process.send_signal(signal.SIGTERM)
        seen += frames
    assert seen[-1]["error"]["type"] == "unavailable_error"
    assert seen[-1]["error"]["message"]
    assert server.process.wait(15) == 0
    server.wait_gone()


@pytest.mark.parametrize("deadly", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_stops_at_once(tiny_llama: Path, make_server: ServerMaker, deadly: signal.Signals) -> None:
    server = make_server(tiny_llama, "-c", "256", "-np", "1", "-t", "1")
    server.process.send_signal(deadly)
    start = time.monotonic()
    assert server.process.wait(10) == 0
    assert time.monotonic() - start < 5
    server.wait_gone()


def test_no_worker_outlives_a_killed_server(slow_llama: Path, make_server: ServerMaker) -> None:
    server = make_server(slow_llama, "-c", "8192", "-np", "1", "-t", "1")
    with server.stream("/completion", NATIVE.body("x", n_predict=8000, ignore_eos=True)) as frames:
        next(frames)
        assert running(server.first_worker)
        server.kill()
    server.wait_gone()


def truncated(model: bytes) -> bytes:
    return model[: len(model) // 2]


def cut_in_header(model: bytes) -> bytes:
    return model[:1000]


def not_gguf(model: bytes) -> bytes:
    return b"PK\x03\x04" + b"\0" * 4000


def empty(model: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("damage", [truncated, cut_in_header, not_gguf, empty])
def test_a_damaged_model_gives_path_and_reason(tiny_llama: Path, tmp_path: Path, make_server: ServerMaker, damage: Any) -> None:
    path = tmp_path / "damaged.gguf"
    path.write_bytes(damage(tiny_llama.read_bytes()))
    server = make_server(path, wait=False)
    assert server.process.wait(30) not in (0, None)
    server.wait_gone()
    assert "damaged.gguf" in server.log
    assert "Traceback" not in server.log
    words = {truncated: "truncated|incomplete|cut|beyond|bounds", cut_in_header: "", not_gguf: "GGUF", empty: "empty|GGUF"}[
        damage
    ]
    assert re.search(words, server.log, re.IGNORECASE), server.log


def test_a_missing_model_gives_path_and_reason(tmp_path: Path, make_server: ServerMaker) -> None:
    for path in (tmp_path / "missing.gguf", tmp_path):
        server = make_server(path, wait=False)
        assert server.process.wait(30) not in (0, None)
        assert str(path) in server.log
        assert re.search("no model file|no such file|not found|is a (directory|folder)", server.log, re.IGNORECASE), server.log
        assert "Traceback" not in server.log


def test_an_unknown_architecture_is_named(tmp_path: Path, make_server: ServerMaker) -> None:
    path = tmp_path / "strange.gguf"
    writer = GGUFWriter(path, "neverseen")
    writer.add_block_count(1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    server = make_server(path, wait=False)
    assert server.process.wait(30) not in (0, None)
    assert "strange.gguf" in server.log and "neverseen" in server.log
    assert "Traceback" not in server.log


def test_a_model_without_a_tokenizer_is_explained(shared: Path, make_server: ServerMaker) -> None:
    """A vocabulary alone has no weights."""
    server = make_server(shared / "data" / "vocab" / "ggml-vocab-llama-spm.gguf", wait=False)
    assert server.process.wait(60) not in (0, None)
    assert "ggml-vocab-llama-spm.gguf" in server.log
    assert "Traceback" not in server.log


def test_a_port_in_use_is_explained(tiny_server: Server, tiny_llama: Path, make_server: ServerMaker) -> None:
    server = make_server(tiny_llama, "--port", str(tiny_server.port), "-c", "256", wait=False)
    assert server.process.wait(30) not in (0, None)
    assert str(tiny_server.port) in server.log
    assert "Traceback" not in server.log
    server.wait_gone()
