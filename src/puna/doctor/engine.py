"""The engine seen from outside: it is loaded in a child process, since it may end the process that loads it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

TRIAL_TIMEOUT = 180.0
"""Seconds for loading a model and reading a few tokens."""


@dataclass(frozen=True)
class EngineFacts:
    """What the child process found out before it ended."""

    description: str = ""
    """Version and compiled-in CPU features; empty when the engine could not be loaded."""
    accelerator: bool = False
    model: str = ""
    """The engine's one-line description of the model; empty when it was not asked, or could not load it."""
    decoder: bool = True
    """Whether the model generates text."""
    trial_passed: bool = False
    error: str = ""
    """Why it stopped early, in the engine's words."""
    signal: str = ""
    """The signal that ended it, such as SIGILL."""


def examine(models: Sequence[str], *, timeout: float = TRIAL_TIMEOUT) -> EngineFacts:
    """Load the engine, and read a few tokens with each model named, in a child process."""
    command = [sys.executable, "-m", "puna.llama.report", *models]
    try:
        child = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout, check=False)
    except subprocess.TimeoutExpired as expired:
        output = expired.stdout.decode("utf-8", "replace") if isinstance(expired.stdout, bytes) else ""
        return understand(output, "", None, timeout)
    return understand(child.stdout, child.stderr, child.returncode, timeout)


def understand(stdout: str, stderr: str, code: int | None, timeout: float) -> EngineFacts:
    """Facts from what the child printed and how it ended; a code of None means that time ran out."""
    facts: dict[str, object] = {}
    for line in stdout.splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            facts.update(found)
    error = str(facts.get("error", ""))
    ended_by = _signal_name(code) if code is not None and code < 0 else ""
    if not error and code is None:
        error = f"nothing came of it within {timeout:.0f} seconds"
    elif not error and code:
        last = [line for line in stderr.splitlines() if line.strip()][-1:]
        error = f"it ended with {ended_by or f'code {code}'}" + (f": {last[0].strip()}" if last else "")
    return EngineFacts(
        description=str(facts.get("engine", "")),
        accelerator=facts.get("accelerator") is True,
        model=str(facts.get("model", "")),
        decoder=facts.get("decoder") is not False,
        trial_passed=facts.get("trial") == "ok",
        error=error,
        signal=ended_by,
    )


def _signal_name(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
