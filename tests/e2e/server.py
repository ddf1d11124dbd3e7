"""A real server in a process of its own, and what tests ask of it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

from tests.conftest import PREFIXES
from tests.e2e.sse import Frame, read_frames

START_TIMEOUT = 60.0


class Server:
    """`python -m puna serve` with a model and flags; a context manager that leaves no process behind."""

    def __init__(self, model: Path | None, *args: str, log: Path, env: Mapping[str, str] | None = None) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_path = log
        self.command = [sys.executable, "-m", "puna", "serve", "--port", str(self.port), *args]
        if "--calibrate" not in args:
            self.command.append("--no-calibrate")
        if model is not None:
            self.command += ["--model", str(model)]
        if model is not None and "-fa" not in args:
            # its rounding depends on the batch's shape so much that even a tiny model's best token may change with it
            self.command += ["-fa", "off"]
        self.env = {name: value for name, value in os.environ.items() if not name.startswith(PREFIXES)}
        self.env.update(env or {})
        self.client = httpx.Client(base_url=self.url, timeout=30.0, trust_env=False)
        self.first_worker = 0
        """The worker's process id when the server had started; 0 for none, where models are loaded later."""
        self._process: subprocess.Popen[bytes] | None = None
        self._family: set[int] = set()

    def __enter__(self) -> Server:
        self.start()
        try:
            self.wait_ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the server was not started"
        return self._process

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> str:
        """Everything the server has said so far."""
        return self.log_path.read_text(errors="replace")

    def start(self) -> None:
        """Start the process without waiting for it."""
        with self.log_path.open("wb") as log:
            self._process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env)

    def wait_ready(self, timeout: float = START_TIMEOUT) -> None:
        """Until `/health` says 200; fails at once, with the log, when the process has ended."""
        end = time.monotonic() + timeout
        while not self.healthy():
            code = self.process.poll()
            assert code is None, f"the server ended with code {code}:\n{self.log[-4000:]}"
            assert time.monotonic() < end, f"not ready after {timeout} s:\n{self.log[-4000:]}"
            time.sleep(0.02)
        self.first_worker = next(iter(self.worker_pids()), 0)

    def healthy(self) -> bool:
        try:
            return self.client.get("/health", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    def worker_pids(self) -> list[int]:
        """The engine workers among the server's living descendants, as /proc knows them."""
        found = descendants(self.pid)
        self._family.update(found)
        return [pid for pid in found if b"puna.engine.worker" in command_line(pid)]

    def stop(self, timeout: float = 15.0) -> None:
        """SIGTERM; the server must exit with 0 and take its worker along."""
        self.worker_pids()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout)
        assert code == 0, f"exit code {code} after SIGTERM:\n{self.log[-4000:]}"
        self.wait_gone()

    def kill(self) -> None:
        """SIGKILL to the server alone."""
        self.worker_pids()
        self.process.kill()
        self.process.wait(10)

    def wait_gone(self, timeout: float = 5.0) -> None:
        """Until no process that this server ever had is left."""
        wait_until(lambda: not any(running(pid) for pid in self._family), timeout, "processes were left behind")

    def close(self) -> None:
        """End whatever still runs, without asking for good manners."""
        self.client.close()
        if self._process is None:
            return
        if self._process.poll() is None:
            self.worker_pids()
            self._process.kill()
            self._process.wait(10)
        for pid in self._family:
            if running(pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def get(self, path: str, **kwargs: Any) -> httpx.Response:
        return self.client.get(path, **kwargs)

    def post(self, path: str, body: Any, **kwargs: Any) -> httpx.Response:
        return self.client.post(path, json=body, **kwargs)

    def post_raw(self, path: str, body: bytes, content_type: str = "application/json") -> httpx.Response:
        """A body that need not be JSON."""
        return self.client.post(path, content=body, headers={"content-type": content_type})

    def json(self, path: str, body: Any) -> Any:
        """The decoded reply of a POST that must succeed."""
        reply = self.post(path, body)
        assert reply.status_code == 200, f"{reply.status_code}: {reply.text[:2000]}"
        return reply.json()

    def frames(self, path: str, body: Mapping[str, Any]) -> list[Frame]:
        """All frames of a streamed reply."""
        with self.stream(path, body) as frames:
            return list(frames)

    @contextlib.contextmanager
    def stream(self, path: str, body: Mapping[str, Any]) -> Iterator[Iterator[Frame]]:
        """The frames of a streamed reply as they come; leaving the block closes the connection."""
        with self.client.stream("POST", path, json={**body, "stream": True}) as reply:
            if reply.status_code != 200:
                reply.read()
                raise AssertionError(f"{reply.status_code}: {reply.text[:2000]}")
            assert reply.headers["content-type"].startswith("text/event-stream")
            yield read_frames(reply.iter_lines())

    def slots(self) -> list[dict[str, Any]]:
        slots: list[dict[str, Any]] = self.get("/slots").json()
        return slots

    def busy_slots(self) -> int:
        return sum(slot["is_processing"] for slot in self.slots())

    def wait_busy(self, n: int, timeout: float = 10.0) -> None:
        wait_until(lambda: self.busy_slots() == n, timeout, f"there are not {n} busy slots")

    def wait_idle(self, timeout: float = 2.0) -> None:
        """Until no slot is busy; `timeout` is what a client that went away may cost."""
        wait_until(lambda: self.busy_slots() == 0, timeout, "slots are still busy")

    def metric(self, name: str) -> float:
        """The value of a metric without labels."""
        for line in self.get("/metrics").text.splitlines():
            if line.split(" ")[0] == name:
                return float(line.split(" ")[1])
        raise AssertionError(f"no metric {name}")

    def assert_alive(self) -> None:
        """The same processes as at the start, healthy, and able to produce a token within 5 s."""
        assert self.process.poll() is None, f"the server has died:\n{self.log[-4000:]}"
        assert self.worker_pids() == [self.first_worker], f"the worker has died:\n{self.log[-4000:]}"
        assert self.get("/health", timeout=5).status_code == 200
        reply = self.post("/completion", {"prompt": "a", "n_predict": 1}, timeout=5)
        assert reply.status_code == 200, reply.text


def free_port() -> int:
    """A port nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def descendants(pid: int) -> list[int]:
    """Living processes below `pid`, the dead ones that nobody has waited for left out."""
    parents = {child: stat[1] for child in _processes() if (stat := _stat(child)) and stat[0] != "Z"}
    found: list[int] = []
    frontier = {pid}
    while frontier:
        frontier = {child for child, parent in parents.items() if parent in frontier}
        found += sorted(frontier)
    return found


def command_line(pid: int) -> bytes:
    """What a process was started with; empty for one that has just ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def running(pid: int) -> bool:
    """Whether the process exists and is more than an entry waiting to be reaped."""
    stat = _stat(pid)
    return stat is not None and stat[0] != "Z"


def resident_bytes(pid: int) -> int:
    """Memory that the process holds now."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def wait_until(condition: Any, timeout: float, complaint: str) -> None:
    """Poll until `condition()` holds; fail with the complaint otherwise."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"{complaint} after {timeout} s"
        time.sleep(0.02)


def _processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _stat(pid: int) -> tuple[str, int] | None:
    """State letter and parent."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The name in parentheses may hold spaces and parentheses itself.
    state, parent = text.rpartition(")")[2].split()[:2]
    return state, int(parent)
