"""The events of a turn as content blocks: started, fed and stopped one after another, never two at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic_core import from_json

from puna.service.chat import CallArguments, CallBegin, Event, Reasoning, Text

Frame = dict[str, Any]


class Blocks:
    """Content blocks as they come. `feed` gives what a stream says of them; `content` is what they add up to."""

    def __init__(self, *, show_thinking: bool = True) -> None:
        """Without `show_thinking` there are blocks of thinking, but nothing in them."""
        self._show_thinking = show_thinking
        self._kinds: list[str] = []
        self._heads: list[dict[str, Any]] = []
        self._parts: list[list[str]] = []
        self._open = False

    def feed(self, events: Iterable[Event]) -> list[Frame]:
        """Frames for the next events."""
        frames: list[Frame] = []
        for event in events:
            if isinstance(event, CallBegin):
                frames += self._begin("tool_use", {"id": event.id, "name": event.name})
            elif isinstance(event, CallArguments):
                frames.append(self._delta(event.text, {"type": "input_json_delta", "partial_json": event.text}))
            elif isinstance(event, Text):
                frames += self._ensure("text")
                frames.append(self._delta(event.text, {"type": "text_delta", "text": event.text}))
            elif isinstance(event, Reasoning):
                frames += self._ensure("thinking")
                if self._show_thinking:
                    frames.append(self._delta(event.text, {"type": "thinking_delta", "thinking": event.text}))
        return frames

    def finish(self) -> list[Frame]:
        """Frames that stop what is open."""
        if not self._open:
            return []
        self._open = False
        return [{"type": "content_block_stop", "index": len(self._kinds) - 1}]

    @property
    def content(self) -> list[dict[str, Any]]:
        """The blocks as a whole reply has them."""
        return [
            self._whole(kind, head, "".join(parts))
            for kind, head, parts in zip(self._kinds, self._heads, self._parts, strict=True)
        ]

    def _ensure(self, kind: str) -> list[Frame]:
        return [] if self._open and self._kinds[-1] == kind else self._begin(kind, {})

    def _begin(self, kind: str, head: dict[str, Any]) -> list[Frame]:
        frames = self.finish()
        self._open = True
        self._kinds.append(kind)
        self._heads.append(head)
        self._parts.append([])
        block = self._whole(kind, head, "")
        return [*frames, {"type": "content_block_start", "index": len(self._kinds) - 1, "content_block": block}]

    def _delta(self, text: str, delta: dict[str, Any]) -> Frame:
        self._parts[-1].append(text)
        return {"type": "content_block_delta", "index": len(self._kinds) - 1, "delta": delta}

    @staticmethod
    def _whole(kind: str, head: dict[str, Any], text: str) -> dict[str, Any]:
        if kind == "tool_use":
            return {"type": kind, **head, "input": arguments(text)}
        if kind == "thinking":
            return {"type": kind, "thinking": text, "signature": ""}
        return {"type": kind, "text": text}


def arguments(text: str) -> dict[str, Any]:
    """A call's arguments; of those that were cut off as much as there is, as the SDKs do it for streams."""
    try:
        value = from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
