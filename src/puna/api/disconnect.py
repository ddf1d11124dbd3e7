"""Work that stops when its client has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

T = TypeVar("T")


class ClientGone(Exception):
    """The client closed its connection before it had its answer."""


async def disconnected(receive: Receive) -> None:
    """Return once the client has gone. To be called after the whole body was read."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_disconnected(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled, and waited for, when the client leaves. Then raises `ClientGone`."""
    working = asyncio.create_task(work)
    watching = asyncio.create_task(disconnected(receive))
    try:
        await asyncio.wait({working, watching}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientGone
    finally:
        await settle(working, watching)


async def settle(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the tasks and wait until they have cleaned up."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
