"""Threads for code that recurses in native frames: a deep grammar must not overflow their stack."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

STACK = 64 * 1024 * 1024
"""Bytes of address space; memory is taken only for what is used. A thread's usual stack may be as small as 512 KiB."""

_starting = threading.Lock()


def deep_pool(n: int, name: str, stack: int = STACK) -> ThreadPoolExecutor:
    """A pool of `n` threads with large stacks, all of them started."""
    pool = ThreadPoolExecutor(n, thread_name_prefix=name)
    gate = threading.Barrier(n + 1)
    wait: Callable[[], int] = gate.wait
    with _starting:
        before = threading.stack_size(stack)
        try:
            for _ in range(n):
                pool.submit(wait)  # each starts a thread, because those before it are busy waiting
        finally:
            threading.stack_size(before)
    gate.wait()
    return pool
