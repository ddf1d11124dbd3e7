"""The shared library itself: loading it, its log, and what it says about itself."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import sys
import types
from collections import deque
from collections.abc import Callable
from typing import Any

from puna.errors import StartupError


def _skip_high_level_api() -> None:
    """Register an empty package in place of `llama_cpp`'s own, whose `__init__` imports half a second of things unused here."""
    spec = importlib.util.find_spec("llama_cpp")
    if spec is not None and "llama_cpp" not in sys.modules:
        package = types.ModuleType("llama_cpp")
        package.__path__ = list(spec.submodule_search_locations or ())
        sys.modules["llama_cpp"] = package


try:
    _skip_high_level_api()
    from llama_cpp import llama_cpp as C
except ImportError as error:  # a missing wheel, or a library whose own dependencies are missing
    raise StartupError(f"the engine (llama-cpp-python) cannot be imported: {error}; run `make engine`") from error
except (OSError, RuntimeError, FileNotFoundError) as error:
    raise StartupError(f"the engine's shared library cannot be loaded: {error}; run `make engine`") from error

__all__ = ["C", "EngineLog", "describe", "mtmd", "start"]

GGML_LOG_LEVEL_WARN = 3
GGML_LOG_LEVEL_ERROR = 4
GGML_LOG_LEVEL_CONT = 5


class EngineLog:
    """Receives everything the engine logs; keeps the last warnings and errors, and hands lines on when asked to."""

    def __init__(self, *, keep: int = 20) -> None:
        self._problems: deque[str] = deque(maxlen=keep)
        self._sink: Callable[[str], None] | None = None
        self._level = 0
        self._partial = ""
        self._callback = C.llama_log_callback(self._receive)

    def install(self, sink: Callable[[str], None] | None) -> None:
        """Take over the engine's log. `sink` gets every line; without one only problems are kept."""
        self._sink = sink
        C.llama_log_set(self._callback, ctypes.c_void_p(0))

    def _receive(self, level: int, text: bytes, _data: object) -> None:
        if level != GGML_LOG_LEVEL_CONT:
            self._level = level
        self._partial += text.decode("utf-8", "replace")
        *lines, self._partial = self._partial.split("\n")
        for line in filter(None, map(str.strip, lines)):
            if self._level in (GGML_LOG_LEVEL_WARN, GGML_LOG_LEVEL_ERROR):
                self._problems.append(line)
            if self._sink is not None:
                self._sink(line)

    @property
    def callback(self) -> Any:
        """For libraries that log on their own."""
        return self._callback

    def take_problems(self) -> list[str]:
        """The warnings and errors since the last call, oldest first."""
        problems = list(self._problems)
        self._problems.clear()
        return problems


log = EngineLog()


@functools.cache
def start(*, verbose: bool = False) -> None:
    """Bring the engine up, once per process. Quiet unless `verbose`, which prints every line to stderr."""
    log.install(_print_line if verbose else None)
    C.llama_backend_init()


@functools.cache
def mtmd() -> Any:
    """The library of projectors, loaded when one is wanted. Raises `StartupError` where the engine was built without it."""
    try:
        from llama_cpp import mtmd_cpp
    except (OSError, RuntimeError, ImportError) as error:
        raise StartupError(f"this build of the engine takes no pictures or sound: {error}; run `make engine`") from error
    mtmd_cpp.mtmd_log_set(log.callback, None)
    return mtmd_cpp


def _print_line(line: str) -> None:
    sys.stderr.write(line + "\n")


def version() -> str:
    """The bindings' version, which pins the library's."""
    from importlib import metadata

    return metadata.version("llama-cpp-python")


def describe() -> str:
    """The bindings' version and the CPU features the library was compiled for, on one line."""
    features = C.llama_print_system_info().decode("utf-8", "replace")
    on = [name.split("=")[0].strip() for name in features.replace(":", "|").split("|") if name.strip().endswith("= 1")]
    return f"llama-cpp-python {version()} ({' '.join(on)})"


def has_accelerator() -> bool:
    """Whether this build can put layers on a GPU or the like."""
    return bool(C.llama_supports_gpu_offload())
