"""Server-sent events, read strictly, and the text that each dialect's frames carry."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

Frame = dict[str, Any]
DONE: Frame = {"done": True}
"""Stands for the literal `[DONE]`."""

FIELDS = ("data:", "event:", "id:", ":")


def read_frames(lines: Iterable[str]) -> Iterator[Frame]:
    """One decoded `data:` frame after another; any other kind of line fails."""
    for line in lines:
        if not line:
            continue
        assert line.startswith(FIELDS), f"not a line of an event stream: {line!r}"
        if not line.startswith("data: "):
            continue
        data = line[len("data: ") :]
        yield DONE if data == "[DONE]" else json.loads(data, parse_constant=_no_constant)


def text_of(frame: Frame) -> str:
    """The text a frame adds, whatever the dialect."""
    if "content" in frame:
        text = frame["content"]
    elif frame.get("choices"):
        choice = frame["choices"][0]
        text = choice["text"] if "text" in choice else choice["delta"].get("content")
    else:
        text = ""
    return text or ""


def join_text(frames: Iterable[Frame]) -> str:
    return "".join(text_of(frame) for frame in frames)


def _no_constant(name: str) -> float:
    raise AssertionError(f"{name} is not JSON")
