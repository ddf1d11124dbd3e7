"""What all chunks and the whole reply of one request have in common."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Any

import msgspec

from puna.service.answers import Answer
from puna.service.service import BUILD
from puna.types import StopType

_FINISH = {"eos": "stop", "word": "stop", "limit": "length"}


def finish_reason(stop_type: StopType) -> str:
    """OpenAI's word for why an answer ended."""
    return _FINISH.get(stop_type, "stop")


class Envelope:
    """Id, time and model of one request, and bytes around the part that changes from chunk to chunk."""

    def __init__(self, *, kind: str, id_prefix: str, model: str) -> None:
        """`kind` is the value of `object`."""
        self.id = id_prefix + secrets.token_urlsafe(24)
        self._fields = {
            "created": int(time.time()),
            "id": self.id,
            "model": model,
            "system_fingerprint": BUILD,
            "object": kind,
        }
        self.tail = b"," + msgspec.json.encode(self._fields)[1:] + b"\n\n"
        """Closes a frame that holds a `choices` list only."""

    def frame(self, choices: Sequence[dict[str, Any]], **more: Any) -> bytes:
        """One whole event."""
        return b"data: " + msgspec.json.encode({"choices": choices, **self._fields, **more}) + b"\n\n"

    def whole(self, choices: Sequence[dict[str, Any]], **more: Any) -> bytes:
        """The reply to a request that does not stream."""
        return msgspec.json.encode({"choices": choices, **self._fields, **more})


def all_ended(answers: Sequence[Answer]) -> bool:
    """Whether nothing is left to come."""
    return all(answer.stop_type != "none" for answer in answers)
