"""Models fetched from a repository that a small server in this process plays."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from huggingface_hub import HfApi

from puna.errors import StartupError
from puna.models.downloads import ClientError, fetch
from tests import tiny

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(ThreadingHTTPServer):
    """One repository, `a/b`, of which everything can go wrong."""

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), Pages)
        self.content = content
        self.claimed = hashlib.sha256(content).hexdigest()
        self.fetched = 0
        self.cuts = 0
        """How many of the next downloads break off in the middle."""
        self.gone = False
        """Whether there is nothing after one that broke off."""
        self.resumed_at: list[int] = []


class Pages(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, *, body: bool) -> None:
        hub = self.server
        if self.path.startswith("/api/models/a/b?"):
            lfs = {"sha256": hub.claimed, "size": len(hub.content), "pointerSize": 130}
            entry = {"rfilename": "m-Q4_0.gguf", "size": len(hub.content), "blobId": "1" * 40, "lfs": lfs}
            self._send(json.dumps({"id": "a/b", "siblings": [entry]}).encode(), "application/json", body=body)
        elif self.path.startswith("/a/b/resolve/"):
            hub.fetched += body
            start = int((self.headers["Range"] or "bytes=0-").removeprefix("bytes=").partition("-")[0])
            hub.resumed_at += [start] if body and start else []
            if body and start and hub.gone:
                self.send_error(404)
                return
            self._send(hub.content[start:], "application/octet-stream", body=body, status=206 if start else 200)
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def _send(self, content: bytes, kind: str, *, body: bool, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{self.server.claimed}"')
        self.send_header("X-Repo-Commit", COMMIT)
        if status == 206:
            total = len(self.server.content)
            self.send_header("Content-Range", f"bytes {total - len(content)}-{total - 1}/{total}")
        self.end_headers()
        if body and kind == "application/octet-stream" and self.server.cuts:
            self.server.cuts -= 1
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
        elif body:
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        return None


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    server = Hub(tiny.write_llama(tmp_path / "m.gguf").read_bytes())
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()


def puna(hub: Hub, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_address[1]}",
        "HF_HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": ":".join(sys.path),
        "HF_HUB_DISABLE_XET": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    return subprocess.run(
        [sys.executable, "-m", "puna", *arguments], capture_output=True, text=True, env=environment, check=False
    )


def test_pull_list_and_offline(hub: Hub, tmp_path: Path) -> None:
    home = tmp_path / "home"
    missing = puna(hub, home, "pull", "a/b", "--offline")
    assert missing.returncode == 2 and "is not there yet" in missing.stderr
    first = puna(hub, home, "pull", "a/b:Q4_0")
    assert first.returncode == 0, first.stderr
    path = Path(first.stdout.splitlines()[-1])
    assert path.read_bytes() == hub.content and hub.fetched == 1
    assert puna(hub, home, "pull", "a/b").returncode == 0 and hub.fetched == 1
    kept = puna(hub, home, "pull", "a/b", "--offline")
    assert Path(kept.stdout.splitlines()[-1]).resolve() == path.resolve()
    listed = puna(hub, home, "models").stdout
    assert "m-Q4_0" in listed and "a/b" in listed and "fits" in listed


def test_what_goes_wrong_is_said_in_words(hub: Hub, tmp_path: Path) -> None:
    home = tmp_path / "home"
    hub.claimed = "0" * 64
    damaged = puna(hub, home, "pull", "a/b")
    assert damaged.returncode == 2 and "came damaged, and was deleted" in damaged.stderr
    assert not list(home.rglob("*.gguf"))
    unknown = puna(hub, home, "pull", "a/other")
    assert unknown.returncode == 2 and "there is no repository a/other" in unknown.stderr
    both = puna(hub, home, "serve", "-hf", "a/b", "-m", "x.gguf")
    assert both.returncode == 2 and "two models" in both.stderr
    assert puna(hub, home, "pull").returncode == 2
    assert puna(hub, home, "pull", "a/b:Q9").returncode == 2


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise ClientError("connection refused")

    monkeypatch.setattr(HfApi, "model_info", refused)
    with pytest.raises(StartupError, match=r"a/b cannot be listed on .*: connection refused; nothing of it is there"):
        fetch("a/b")


def test_a_download_that_is_cut_goes_on_where_it_ended(hub: Hub, tmp_path: Path) -> None:
    home = tmp_path / "home"
    hub.content += bytes(45 << 20)
    hub.claimed = hashlib.sha256(hub.content).hexdigest()
    hub.cuts = 1
    hub.gone = True
    cut = puna(hub, home, "pull", "a/b")
    assert cut.returncode == 2 and "could not be fetched" in cut.stderr and "start again to go on" in cut.stderr
    assert puna(hub, home, "pull", "a/b", "--offline").returncode == 2, "half a file is no model"
    hub.gone, hub.resumed_at = False, []
    whole = puna(hub, home, "pull", "a/b")
    assert whole.returncode == 0, whole.stderr
    assert Path(whole.stdout.splitlines()[-1]).read_bytes() == hub.content
    assert hub.resumed_at == [20 << 20], "two whole pieces of the client's had come"
    assert not list(home.rglob("*.partial"))


def test_without_a_network_what_is_there_is_used(hub: Hub, tmp_path: Path) -> None:
    home = tmp_path / "home"
    path = puna(hub, home, "pull", "a/b").stdout.splitlines()[-1]
    hub.shutdown()
    hub.server_close()
    again = puna(hub, home, "pull", "a/b")
    assert again.returncode == 0 and "the file that is there is taken" in again.stdout
    assert Path(again.stdout.splitlines()[-1]).resolve() == Path(path).resolve()
    other = puna(hub, home, "pull", "a/c")
    assert other.returncode == 2 and other.stderr.startswith("puna: a/c cannot be listed on 127.0.0.1:")
    assert len(other.stderr.splitlines()) == 1 and "refused" in other.stderr
