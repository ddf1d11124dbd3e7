"""Which public slot a request gets. Pure."""

from __future__ import annotations

from collections.abc import Collection


def choose_slot(wanted: int, n_slots: int, busy: Collection[int]) -> int:
    """A free slot: the wanted one where that is possible, else the lowest. Numbers beyond the last slot wrap around.

    Raises `ValueError` when all are busy.
    """
    if wanted >= 0 and wanted % n_slots not in busy:
        return wanted % n_slots
    for slot in range(n_slots):
        if slot not in busy:
            return slot
    raise ValueError("all slots are busy")
