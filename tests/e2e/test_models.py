"""Several models behind one port, with real workers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests import tiny
from tests.e2e.server import Server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("models")
    for name in ("alpha", "beta"):
        tiny.write_llama(made / f"{name}.gguf")
    tiny.write_bert(made / "vectors.gguf")
    (made / "bad.gguf").write_bytes(b"this is no model")
    whole = (made / "alpha.gguf").read_bytes()
    (made / "cut.gguf").write_bytes(whole[: len(whole) * 2 // 3])
    return made


def ask(http: httpx.Client, model: str) -> httpx.Response:
    return http.post("/completion", json={"prompt": "a", "n_predict": 3, "model": model, "ignore_eos": True})


def states(http: httpx.Client) -> dict[str, str]:
    return {one["id"]: one["status"]["value"] for one in http.get("/models").json()["data"]}


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def until(condition: Callable[[], bool], seconds: float = 40) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_models_come_and_go(folder: Path) -> None:
    flags = ("--models-dir", str(folder), "--models-max", "2", "--sleep-idle-seconds", "8")
    with Server(None, *flags, log=folder / "log") as server, httpx.Client(base_url=server.url, timeout=60) as http:
        assert set(states(http)) == {"alpha", "beta", "vectors", "cut"} and set(states(http).values()) == {"unloaded"}
        assert ask(http, "alpha").json()["tokens_predicted"] == 3
        assert len(http.post("/v1/embeddings", json={"input": "a"}).json()["data"]) == 1
        assert ask(http, "beta").status_code == 200
        assert states(http) == {"alpha": "unloaded", "beta": "loaded", "vectors": "loaded", "cut": "unloaded"}
        failed = ask(http, "cut")
        assert failed.status_code == 503 and "cut" in failed.json()["error"]["message"]
        assert ask(http, "beta").status_code == 200 and states(http)["cut"] == "failed"
        until(lambda: set(states(http).values()) <= {"sleeping", "unloaded", "failed"})
        assert server.worker_pids() == []
        assert ask(http, "beta").status_code == 200 and states(http)["beta"] == "loaded"


def test_a_worker_that_is_killed_harms_no_other_model(folder: Path) -> None:
    flags = ("--embedding-model", str(folder / "vectors.gguf"), "--models-dir", str(folder))
    first = folder / "alpha.gguf"
    with Server(first, *flags, log=folder / "log2") as server, httpx.Client(base_url=server.url, timeout=60) as http:
        until(lambda: states(http)["alpha"] == states(http)["vectors"] == "loaded")
        assert http.post("/v1/completions", json={"prompt": "a", "max_tokens": 2, "model": "gpt-4o"}).status_code == 404
        assert http.post("/v1/embeddings", json={"input": "a", "model": "text-embedding-3-small"}).status_code == 200
        for worker in server.worker_pids():
            os.kill(worker, signal.SIGKILL)
        assert ask(http, "alpha").status_code == 200
        assert http.post("/v1/embeddings", json={"input": "a"}).status_code == 200

        with ThreadPoolExecutor(1) as pool:
            others = set(server.worker_pids())
            loading = pool.submit(ask, http, "beta")
            until(lambda: set(server.worker_pids()) > others)
            for worker in set(server.worker_pids()) - others:
                os.kill(worker, signal.SIGKILL)
            killed = loading.result()
        assert killed.status_code == 503 and "SIGKILL" in killed.json()["error"]["message"]
        assert states(http) == {"alpha": "loaded", "vectors": "loaded", "beta": "failed", "cut": "unloaded"}
        assert ask(http, "alpha").status_code == 200
        until(lambda: ask(http, "beta").status_code == 200)

        before = open_files(server.pid)
        for _ in range(2):
            assert http.post("/models/unload", json={"model": "beta"}).status_code == 200
            assert set(server.worker_pids()) == others
            assert http.post("/models/load", json={"model": "beta"}).status_code == 200
        assert open_files(server.pid) == before


PATHS = ["../alpha", "/etc/passwd", "alpha.gguf", "./alpha", "alpha/", "..", "alpha\0", "%2e%2e/alpha", "C:\\alpha", "a" * 5000]


def test_names_that_are_paths_name_nothing(folder: Path) -> None:
    with Server(None, "--models-dir", str(folder), log=folder / "log3") as server, httpx.Client(base_url=server.url) as http:
        for name in PATHS:
            for path, body in (("/models/load", {}), ("/models/unload", {}), ("/completion", {"prompt": "a"})):
                reply = http.post(path, json={**body, "model": name})
                assert reply.status_code == 404, (path, name)
                message = reply.json()["error"]["message"]
                assert "no model called" in message and str(folder) not in message
        assert http.get("/v1/models/..%2falpha").status_code == 404
        assert set(states(http).values()) == {"unloaded"} and server.worker_pids() == []
