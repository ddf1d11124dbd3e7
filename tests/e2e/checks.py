"""What every reply must be."""

from __future__ import annotations

import json

import httpx


def is_sound(reply: httpx.Response, *, statuses: tuple[int, ...] = (200, 400)) -> bool:
    """A reply of one of the statuses, in JSON, with a message when it is an error."""
    assert reply.status_code in statuses, f"{reply.status_code}: {reply.text[:500]}"
    assert reply.headers["content-type"].startswith("application/json")
    body = json.loads(reply.content.decode("utf-8", "strict"), parse_constant=_no_constant)
    if reply.status_code != 200:
        error = body["error"]
        assert error["message"] and error["type"] and error["code"] == reply.status_code
        assert "param" in error
    return True


def _no_constant(name: str) -> float:
    raise AssertionError(f"{name} is not JSON")
