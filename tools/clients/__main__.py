"""Try clients that are too large for every run: libraries that need an environment of their own, and coding agents.

    make clients                       all of them
    make clients ARGS="codex aider"    some

Each is installed, pinned, below `.venv/clients` and run headless, in an empty home, against the HTTP server around a scripted
engine. A client passes if it did what the script asked for and the server's log has exactly the requests that takes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

from tests.clients.live import Live
from tests.clients.scenes import Stage
from tools.clients.agents import AGENTS
from tools.clients.client import Client, Run
from tools.clients.libraries import LIBRARIES

CLIENTS = (*LIBRARIES, *AGENTS)


def attempt(client: Client) -> str:
    """What became of it, in a line."""
    if client.npm and shutil.which("npm") is None:
        return "not run: there is no npm"
    try:
        folder = client.install()
    except subprocess.CalledProcessError as error:
        return f"not run: cannot be installed ({error})"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, Live(Stage()) as live:
        run = Run(folder, Path(home), live)
        try:
            client.run(run)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            traceback.print_exc()
            print(*live.lines, sep="\n", file=sys.stderr)
            return "failed"
        finally:
            run.end()
    return "passed"


def main(names: list[str]) -> int:
    """0 if nothing failed."""
    unknown = set(names) - {client.name for client in CLIENTS}
    if unknown:
        print(f"there is no {', '.join(sorted(unknown))} among {', '.join(client.name for client in CLIENTS)}", file=sys.stderr)
        return 2
    results: dict[str, str] = {}
    for client in CLIENTS:
        if not names or client.name in names:
            results[client.name] = attempt(client)
            print(f"{' '.join(client.packages):80} {results[client.name]}", flush=True)
    return int("failed" in results.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
