"""Mistral's models.

Nemo and its time:

[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Paris"}, "id": "aB3dE5gH7"}]

Small 3.2, whose calls have ids; Devstral and Ministral, whose calls have none:

[TOOL_CALLS]get_weather[CALL_ID]aB3dE5gH7[ARGS]{"city": "Paris"}
[THINK]It is about the weather.[/THINK][TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}
"""

from __future__ import annotations

from puna.chat.formats.bodies.envelope import Envelope
from puna.chat.formats.bodies.named import Named
from puna.chat.formats.description import Calls, Description, Thinking
from puna.chat.formats.ids import new_short_id
from puna.outline import Node, Pattern, seq

_ID = "[a-zA-Z0-9]{9}"
_CALL_ID = "[CALL_ID]"

NEMO = Description(
    name="mistral-nemo",
    calls=Calls(body=Envelope(id="id", id_pattern=_ID), begin="[TOOL_CALLS]", array=True, between=", ", new_id=new_short_id),
)


def _spell(name: str) -> Node:
    return seq(name, _CALL_ID, Pattern(_ID))


def _read(text: str) -> tuple[str, str | None]:
    name, _, own_id = text.partition(_CALL_ID)
    return name.strip(), own_id.strip() or None


def mistral(source: str) -> Description:
    """Small 3.2 and later: whether there are ids and thoughts is seen from the template."""
    ids = _CALL_ID in source
    body = Named(behind="[ARGS]", spell=_spell, read=_read, extra=(_CALL_ID,)) if ids else Named(behind="[ARGS]", read=_read)
    return Description(
        name="mistral",
        thinking=Thinking("[THINK]", "[/THINK]", gap="", lead="") if "[THINK]" in source else None,
        calls=Calls(body=body, call_begin="[TOOL_CALLS]", new_id=new_short_id),
    )
