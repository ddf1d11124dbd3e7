"""Adapters and their scales, as requests name them."""

from __future__ import annotations

from collections.abc import Sequence

from puna.api.fields import LoraScale
from puna.errors import InvalidRequest
from puna.service.adapters import AdapterScales, Scales, chosen


def decode_lora(fields: Sequence[LoraScale], adapters: AdapterScales, *, param: str = "") -> Scales:
    """The adapters that are to count. Raises `InvalidRequest` that names the id which is not loaded, below `param`."""
    n = len(adapters)
    for index, field in enumerate(fields):
        if field.id >= n:
            at = f"{param}.{index}.id" if param else f"{index}.id"
            loaded = f"the loaded ones are 0 to {n - 1}" if n else "none are loaded; start the server with --lora FILE"
            raise InvalidRequest(f"Field '{at}': there is no adapter {field.id}; {loaded}", param=at)
    return chosen((field.id, field.scale) for field in fields)
