"""`POST /slots/{id}`: what is asked of the engine, what is replied, what is refused before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from puna.types import SlotOutcome
from tests.fakes import FakeEngine
from tests.web import client


async def act(path: str, body: Any = None, folder: str = "/srv/slots") -> tuple[int, dict[str, Any], FakeEngine]:
    engine = FakeEngine(outcome=SlotOutcome(n_tokens=84, n_bytes=1234, ms=1.5))
    async with client(engine, slot_save_path=folder) as http:
        reply = await http.post(path, json=body) if body is not None else await http.post(path)
    return reply.status_code, reply.json(), engine


async def test_replies_are_llama_cpps() -> None:
    status, reply, engine = await act("/slots/1?action=save", {"filename": "one.bin"})
    assert (status, engine.actions) == (200, [("save", 1, str(Path("/srv/slots/one.bin")))])
    assert reply == {"id_slot": 1, "filename": "one.bin", "n_saved": 84, "n_written": 1234, "timings": {"save_ms": 1.5}}
    status, reply, engine = await act("/slots/0?action=restore", {"filename": "one.bin"})
    assert reply == {"id_slot": 0, "filename": "one.bin", "n_restored": 84, "n_read": 1234, "timings": {"restore_ms": 1.5}}
    status, reply, engine = await act("/slots/3?action=erase")
    assert (status, reply, engine.actions) == (200, {"id_slot": 3, "n_erased": 84}, [("erase", 3, "")])


@pytest.mark.parametrize("path", ["/slots/4", "/slots/-1", "/slots/x", "/slots/99999999999", "/slots/²", "/slots/1.0"])
async def test_slots_that_are_none(path: str) -> None:
    status, reply, engine = await act(f"{path}?action=save", {"filename": "x"})
    assert (status, reply["error"]["param"], engine.actions) == (400, "id_slot", [])


@pytest.mark.parametrize("query", ["", "?action=", "?action=drop", "?action=SAVE"])
async def test_actions_that_are_none(query: str) -> None:
    status, reply, _ = await act(f"/slots/1{query}", {"filename": "x"})
    assert (status, reply["error"]["param"]) == (400, "action")


@pytest.mark.parametrize(
    "body", [{}, {"filename": None}, {"filename": 5}, {"filename": "../x"}, {"filename": ""}, {"filename": ["x"]}]
)
async def test_files_that_are_none(body: Any) -> None:
    for action in ("save", "restore"):
        status, reply, engine = await act(f"/slots/1?action={action}", body)
        assert (status, reply["error"]["param"], engine.actions) == (400, "filename", [])


async def test_without_a_folder_there_are_no_actions() -> None:
    for action in ("save", "restore", "erase"):
        status, reply, _ = await act(f"/slots/1?action={action}", {"filename": "x"}, folder="")
        assert (status, reply["error"]["type"]) == (501, "not_supported_error")
        assert "--slot-save-path" in reply["error"]["message"]
