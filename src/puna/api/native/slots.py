"""`POST /slots/{id}?action=...`."""

from __future__ import annotations

from typing import Any, get_args

from puna.api import body as bodies
from puna.api.native.schema import SlotFileRequest
from puna.errors import InvalidRequest, NotSupported
from puna.service.service import Service
from puna.service.slotfiles import slot_file
from puna.types import SlotAction

ACTIONS: dict[str, SlotAction] = {action: action for action in get_args(SlotAction)}


async def act(service: Service, id_slot: str, action: str | None, raw: bytes) -> dict[str, Any]:
    """Do what was asked of a slot, and say what was done. `raw` is the request's body, which erasing does not need.

    Raises `NotSupported` unless the server has a folder for slots, `InvalidRequest` for a wrong slot, action or file.
    """
    folder = service.settings.slot_save_path
    if not folder:
        raise NotSupported("This server does not support slots action. Start it with `--slot-save-path`")
    n_slots = service.facts.n_slots
    if not (id_slot.isascii() and id_slot.isdigit() and len(id_slot) < 10 and int(id_slot) < n_slots):
        raise InvalidRequest(f"Invalid slot ID: there are slots 0 to {n_slots - 1}", param="id_slot")
    if action not in ACTIONS:
        raise InvalidRequest("Invalid action: it has to be save, restore or erase", param="action")
    slot = int(id_slot)
    if action == "erase":
        outcome = await service.engine.act_on_slot("erase", slot)
        return {"id_slot": slot, "n_erased": outcome.n_tokens}
    name = bodies.validate(SlotFileRequest, bodies.parse(raw)).filename
    path = slot_file(folder, name)
    outcome = await service.engine.act_on_slot(ACTIONS[action], slot, str(path))
    reply: dict[str, Any] = {"id_slot": slot, "filename": name}
    if action == "save":
        counts = {"n_saved": outcome.n_tokens, "n_written": outcome.n_bytes, "timings": {"save_ms": outcome.ms}}
    else:
        counts = {"n_restored": outcome.n_tokens, "n_read": outcome.n_bytes, "timings": {"restore_ms": outcome.ms}}
    return reply | counts
