"""The schema that constrained output is measured with: four fields, a nested object, a list of choices, a pattern."""

from __future__ import annotations

import json
import re
from typing import Any

COLOURS = ["red", "green", "blue", "white", "black"]

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
        "count": {"type": "integer", "minimum": 0, "maximum": 1000},
        "colours": {"type": "array", "items": {"enum": COLOURS}, "minItems": 1, "maxItems": 3},
        "maker": {
            "type": "object",
            "properties": {"country": {"type": "string", "maxLength": 20}, "certified": {"type": "boolean"}},
            "required": ["country", "certified"],
            "additionalProperties": False,
        },
    },
    "required": ["code", "count", "colours", "maker"],
    "additionalProperties": False,
}


def is_valid(text: str) -> bool:
    """Whether a text is a whole object of the schema. Written out, so that measuring needs no validator."""
    try:
        value = json.loads(text)
    except ValueError:
        return False
    if not isinstance(value, dict) or set(value) != set(SCHEMA["properties"]):
        return False
    maker = value["maker"]
    return (
        isinstance(value["code"], str)
        and re.fullmatch(r"[A-Z]{3}-[0-9]{4}", value["code"]) is not None
        and type(value["count"]) is int
        and 0 <= value["count"] <= 1000
        and isinstance(value["colours"], list)
        and 1 <= len(value["colours"]) <= 3
        and all(colour in COLOURS for colour in value["colours"])
        and isinstance(maker, dict)
        and set(maker) == {"country", "certified"}
        and isinstance(maker["country"], str)
        and len(maker["country"]) <= 20
        and isinstance(maker["certified"], bool)
    )
