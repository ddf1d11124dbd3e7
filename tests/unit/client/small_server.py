"""A process with a client in it, to be killed. Run as `small_server.py FOLDER idle|busy|loading`; prints the worker's pid."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from puna.types import Generation
from tests.unit.client.helpers import make, until
from tests.unit.client.scenario import Scenario


async def main(folder: str, mode: str) -> None:
    client = make(Scenario(folder=folder, hang_loading=mode == "loading"))
    starting = asyncio.create_task(client.start())
    await until(lambda: client.progress > 0)
    if mode != "loading":
        await starting
    stream = client.generate(Generation(prompt=(1,))) if mode == "busy" else None
    if stream is not None:
        await stream.first()
    sys.stdout.write(f"{client.worker_pid}\n")
    sys.stdout.flush()
    await asyncio.sleep(600)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
