"""Prompts on disk across restarts, deaths and neighbours."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.e2e.conftest import ServerMaker
from tests.e2e.server import Server, wait_until

TALES = [f"Tale {i}: " + f"once upon a time there were {i} kings who lived in {i} castles. " * 3 for i in range(6)]


def ask(server: Server, prompt: str, word: str) -> Any:
    reply = server.json("/completion", {"prompt": prompt, "grammar": f'root ::= "{word}"', "temperature": 0})
    assert reply["content"] == word
    return reply["timings"]


def flags(folder: Path, *more: str) -> tuple[str, ...]:
    return ("-c", "1024", "-np", "2", "-t", "1", "--cache-dir", str(folder), *more)


def test_a_restart_of_server_or_worker_costs_no_reading(tiny_llama: Path, tmp_path: Path, make_server: ServerMaker) -> None:
    folder = tmp_path / "cache"
    server = make_server(tiny_llama, *flags(folder))
    for i, tale in enumerate(TALES):
        assert ask(server, tale, f"answer {i}")["cache_n"] < 20
    server.stop()
    assert len(list(folder.iterdir())) == len(TALES)

    server = make_server(tiny_llama, *flags(folder))
    timings = ask(server, TALES[0] + "And?", "fine")
    assert timings["cache_n"] > 90 and timings["prompt_n"] <= 5
    ask(server, "Nobody has told this one before. " * 5, "new")
    os.kill(server.worker_pids()[0], signal.SIGTERM)  # as a service manager does that signals all processes
    wait_until(lambda: server.metric("puna:engine_restarts_total") == 1, 20, "the worker was not replaced")
    for i, tale in enumerate(TALES[1:]):
        assert ask(server, tale + "And?", f"fine {i}")["prompt_n"] <= 5
    assert ask(server, "Nobody has told this one before. " * 5 + "And?", "fine")["prompt_n"] <= 5
    assert server.metric("puna:disk_hits_total") == 6
    (victim, *_) = sorted(folder.iterdir())
    victim.write_bytes(victim.read_bytes()[:-1])
    server.kill()

    server = make_server(tiny_llama, *flags(folder))
    for i, tale in enumerate(TALES):
        ask(server, tale + "And?", f"true {i}")
    assert server.log.count("is damaged") == 1
    assert server.metric("puna:disk_bad_total") == 1
    server.stop()


def test_two_servers_and_a_death_on_one_folder(tiny_llama: Path, tmp_path: Path, make_server: ServerMaker) -> None:
    folder = tmp_path / "cache"
    pair = [make_server(tiny_llama, *flags(folder, "--cache-ram", "0", "--cache-disk", "1"), wait=False) for _ in range(2)]
    for server in pair:
        server.wait_ready()

    def work(number: int) -> None:
        server = pair[number % 2]
        for i in range(12):
            ask(server, TALES[(i + number) % 6] * 2 + f"Reader {i % 4}", f"word {i} of {number}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 1 << 20
    pair[0].kill()
    work(1)
    assert pair[1].metric("puna:disk_hits_total") > 0 and pair[1].metric("puna:disk_bad_total") == 0
    pair[1].stop()
    assert "engine:" not in pair[0].log + pair[1].log, "nothing is wrong with a file that the other one took"
