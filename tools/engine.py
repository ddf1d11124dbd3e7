"""Build the engine's wheel once per machine and install it.

pip's own wheel cache ignores compiler flags, and llama-cpp-python compiles for the CPU it is built on. So the wheel is
kept in a user cache folder whose name is a digest of everything that shapes the binary: package version, flags,
compiler and CPU features. A second clone then installs in seconds and never gets a wheel made for something else.

Only the standard library is used: this runs before anything is installed.

    python tools/engine.py install     build if needed, then install into the environment of this interpreter
    python tools/engine.py rebuild     build even if there is a wheel, then install
    python tools/engine.py flags       print what a build would use, and why
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # the module's absence has no other spelling

VERSION = "0.3.36"
"""The llama-cpp-python release whose bindings `puna.llama` is written against."""

AMX_FEATURES = ("amx_tile", "amx_int8", "amx_bf16")
NO_AMX = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
FIRST_GOOD_GCC = 13
"""GCC 12 miscompiles ggml's AMX kernels: SIGILL at the first prompt of two tokens or more."""


def cpu_features() -> list[str]:
    """The CPU's feature names as the kernel lists them, sorted; empty where there is no such list."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return []
    found = re.search(r"^(?:flags|Features)\s*:\s*(.*)$", text, re.MULTILINE)
    return sorted(found.group(1).split()) if found else []


def compiler_version() -> str:
    """The C++ compiler's first line of `--version`, or a clear exit when there is none."""
    compiler = os.environ.get("CXX") or next((name for name in ("c++", "g++", "clang++") if shutil.which(name)), "")
    if not compiler or not shutil.which(shlex.split(compiler)[0]):
        raise SystemExit("puna needs a C++ compiler to build its engine (Debian: apt install g++; macOS: xcode-select --install)")
    output = subprocess.run([*shlex.split(compiler), "--version"], capture_output=True, text=True, check=False)
    if output.returncode != 0 or not output.stdout.strip():
        raise SystemExit(f"puna: the C++ compiler does not work: `{compiler} --version` failed: {output.stderr.strip()[:200]}")
    return output.stdout.splitlines()[0]


def is_old_gcc(version: str) -> bool:
    """Whether the compiler's version line names a GCC older than the first that gets AMX right."""
    if "clang" in version.lower():
        return False
    numbers = re.findall(r"(?<![\w.+-])(\d+)\.\d+(?:\.\d+)?(?![\w.])", version)
    return bool(numbers) and int(numbers[-1]) < FIRST_GOOD_GCC


def build_environment() -> tuple[dict[str, str], list[str]]:
    """The variables that steer the build, and a sentence for each thing that was decided here."""
    chosen = {name: os.environ.get(name, "") for name in ("CFLAGS", "CXXFLAGS", "CMAKE_ARGS", "CC", "CXX")}
    reasons = []
    has_amx = any(feature in cpu_features() for feature in AMX_FEATURES)
    if has_amx and is_old_gcc(compiler_version()):
        for name in ("CFLAGS", "CXXFLAGS"):
            chosen[name] = f"{chosen[name]} {NO_AMX}".strip()
        reasons.append(f"AMX is left out: this CPU has it and the compiler is a GCC older than {FIRST_GOOD_GCC}")
    return chosen, reasons


def cache_folder(environment: dict[str, str]) -> Path:
    """Where the wheel for this machine and these flags lives."""
    facts = {
        "version": VERSION,
        "environment": environment,
        "compiler": compiler_version(),
        "machine": platform.machine(),
        "system": platform.system(),
        "cpu": cpu_features() or platform.processor(),
    }
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "puna" / "engine" / f"{VERSION}-{digest}"


def say(text: str) -> None:
    print(f"puna: {text}", flush=True)


def usable_cores() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def build(folder: Path, environment: dict[str, str]) -> Path:
    """Compile the wheel and move it into `folder` whole, so that an interrupted build leaves nothing behind."""
    if not shutil.which("cmake"):
        raise SystemExit("puna needs cmake to build its engine (Debian: apt install cmake; macOS: brew install cmake)")
    say(f"building the engine (llama-cpp-python {VERSION}); this takes about ten minutes on two cores, once per machine")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="build-") as scratch:
        command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-cache-dir", "--no-binary", "llama-cpp-python",
                   "--disable-pip-version-check", "--wheel-dir", scratch, f"llama-cpp-python=={VERSION}"]  # fmt: skip
        steering = {"CMAKE_BUILD_PARALLEL_LEVEL": str(usable_cores()), **os.environ}
        steering.update({name: value for name, value in environment.items() if value})
        if subprocess.run(command, check=False, env=steering).returncode != 0:
            raise SystemExit("puna: the engine could not be built; the reason is in the lines above")
        wheel = next(Path(scratch).glob("*.whl"))
        folder.mkdir(exist_ok=True)
        target = folder / wheel.name
        os.replace(wheel, target)
    return target


@contextlib.contextmanager
def one_at_a_time(folder: Path) -> Iterator[None]:
    """Keep a second clone from compiling the same wheel: it waits here and then finds it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    if fcntl is None:
        yield
        return
    with open(folder.parent / f"{folder.name}.lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another process is building the engine; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install(*, rebuild: bool = False) -> None:
    """Build the wheel unless it is there, then install it into this interpreter's environment."""
    environment, reasons = build_environment()
    folder = cache_folder(environment)
    stamp = Path(sys.prefix) / "puna-engine"
    if not rebuild and stamp.exists() and stamp.read_text(encoding="utf-8") == folder.name:
        return
    for reason in reasons:
        say(reason)
    with one_at_a_time(folder):
        ready = None if rebuild else next(folder.glob("*.whl"), None)
        wheel = ready or build(folder, environment)
    say(f"installing the engine from {wheel.parent}")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--force-reinstall", "--no-deps"]
    if subprocess.run([*command, str(wheel)], check=False).returncode != 0:
        raise SystemExit(f"puna: the engine could not be installed from {wheel}; remove that file and try again")
    stamp.write_text(folder.name, encoding="utf-8")


def main() -> None:
    action = sys.argv[1] if len(sys.argv) > 1 else "install"
    if action in {"install", "rebuild"}:
        install(rebuild=action == "rebuild")
    elif action == "flags":
        environment, reasons = build_environment()
        variables = [f"{name}={value}" for name, value in environment.items() if value]
        print("\n".join([*variables, *reasons, str(cache_folder(environment))]))
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
