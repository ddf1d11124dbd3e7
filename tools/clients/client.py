"""Installing a client in a folder of its own, and running it in an empty home."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.clients.live import Live

FOLDER = Path(sys.prefix) / "clients"
CHAT, RESPONSES, MESSAGES = ("POST /v1/chat/completions 200", "POST /v1/responses 200", "POST /v1/messages 200")
TIMEOUT = 600
"""Seconds that a run of a client may take."""


@dataclass(frozen=True)
class Client:
    """One client: what to install, and what to do with it."""

    name: str
    packages: tuple[str, ...]
    """With their versions."""
    run: Callable[[Run], None]
    npm: bool = False

    def install(self) -> Path:
        """Its folder; installs it unless just these versions are there."""
        folder = FOLDER / self.name
        stamp = folder / "stamp"
        wanted = "\n".join(self.packages)
        if stamp.is_file() and stamp.read_text() == wanted:
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if self.npm:
            command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), *self.packages]
        else:
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
            command = [str(folder / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", *self.packages]
        subprocess.run(command, check=True, cwd=folder)
        stamp.write_text(wanted)
        return folder


@dataclass(frozen=True)
class Run:
    """One run of a client."""

    folder: Path
    """Where it is installed."""
    home: Path
    """An empty folder, its home and where it works."""
    live: Live
    """The server."""

    def python(self, code: str) -> str:
        """What a program that uses the client says."""
        return self._execute(self.folder / "bin/python", "-c", code)

    def program(self, name: str, *arguments: str | Path, **env: str) -> str:
        """What one of the client's programs says on standard output. It sees nothing of this environment but the path."""
        found = [path for path in (self.folder / "bin" / name, self.folder / "node_modules/.bin" / name) if path.exists()]
        return self._execute(found[0], *arguments, **env)

    def took_effect(self) -> None:
        """The command that the model called for has run; forgets it."""
        file = self.home / "ran.txt"
        assert file.read_text() == "it-ran\n"
        file.unlink()

    def end(self) -> None:
        """End what it has left running: all that has this home."""
        mark = f"HOME={self.home}\0".encode()
        for environ in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):  # others' processes, or one that has just ended
                if mark in environ.read_bytes():
                    os.kill(int(environ.parent.name), signal.SIGTERM)

    def _execute(self, *command: str | Path, **env: str) -> str:
        settings = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "OPENAI_BASE_URL": self.live.url,
            "OPENAI_API_BASE": self.live.url,
            "OPENAI_API_KEY": "x",
            "ANTHROPIC_BASE_URL": self.live.root,
            "ANTHROPIC_API_KEY": "x",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            **env,
        }
        done = subprocess.run(
            [str(part) for part in command],
            cwd=self.home,
            env=settings,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout
