"""Servers for the end-to-end tests: one that most share, and makers of ones that may be broken."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests import tiny
from tests.e2e.server import Server

ServerMaker = Callable[..., Server]


@pytest.fixture(scope="session")
def slow_llama(tiny_folder: Path) -> Path:
    """A model with a long context that takes milliseconds a token and seconds to read thousands of them."""
    return tiny.write_llama(
        tiny_folder / "slow-llama.gguf",
        n_layer=8,
        n_embd=192,
        n_head=8,
        n_head_kv=4,
        n_ctx_train=8192,
        file_type="f16",
        name="slow llama",
    )


@pytest.fixture(scope="session")
def tiny_server(tiny_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with 4 slots of 1,024 tokens, shared by all tests that leave it as it was."""
    log = tmp_path_factory.mktemp("server") / "log"
    with Server(tiny_llama, "-c", "1024", "-np", "4", "-t", "1", log=log) as server:
        yield server
        server.stop()


@pytest.fixture(scope="session")
def slow_server(slow_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with 2 slots whose work lasts long enough to be interrupted."""
    log = tmp_path_factory.mktemp("server") / "log"
    with Server(slow_llama, "-c", "8192", "-np", "2", "-t", "1", log=log) as server:
        yield server
        server.stop()


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[ServerMaker]:
    """Makes servers that end with the test, whatever happens to them."""
    with ExitStack() as stack:
        count = 0

        def make(model: Path | None, *args: str, wait: bool = True, **kwargs: Any) -> Server:
            nonlocal count
            count += 1
            server = Server(model, *args, log=tmp_path / f"server-{count}.log", **kwargs)
            stack.callback(server.close)
            server.start()
            if wait:
                server.wait_ready()
            return server

        yield make
