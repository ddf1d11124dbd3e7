"""The events of a turn as output items: added, filled and done one after another, never two at once."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any

from puna.service.chat import CallArguments, CallBegin, Event, Reasoning, Text

Frame = dict[str, Any]

_PARTS = {"message": "output_text", "reasoning": "reasoning_text"}
_DELTAS = {"message": "response.output_text", "reasoning": "response.reasoning_text"}


class Output:
    """Output items as they come. `feed` gives what a stream says of them; `items` is what they add up to."""

    def __init__(self) -> None:
        self._done: list[dict[str, Any]] = []
        self._kind = ""
        self._id = ""
        self._head: dict[str, Any] = {}
        self._parts: list[str] = []

    @property
    def items(self) -> list[dict[str, Any]]:
        """All items that are done."""
        return self._done

    def feed(self, events: Iterable[Event]) -> list[Frame]:
        """Frames for the next events, without their sequence numbers."""
        frames: list[Frame] = []
        for event in events:
            if isinstance(event, CallBegin):
                frames += self.finish("completed")
                frames += self._begin("function_call", "fc_", {"call_id": event.id, "name": event.name})
            elif isinstance(event, CallArguments):
                frames.append(self._delta("response.function_call_arguments.delta", event.text))
            elif isinstance(event, (Text, Reasoning)):
                kind = "message" if isinstance(event, Text) else "reasoning"
                if self._kind != kind:
                    frames += self.finish("completed")
                    frames += self._begin(kind, "msg_" if kind == "message" else "rs_", {})
                frames.append(self._text_delta(event.text))
        return frames

    def finish(self, status: str) -> list[Frame]:
        """Frames that end the open item; `status` is `completed` or `incomplete`."""
        if not self._kind:
            return []
        text = "".join(self._parts)
        where = {"item_id": self._id, "output_index": len(self._done)}
        frames: list[Frame] = []
        if self._kind == "function_call":
            text = text or "{}"
            done = {"type": "response.function_call_arguments.done", **where, "name": self._head["name"], "arguments": text}
            frames.append(done)
        else:
            more: dict[str, Any] = {"logprobs": []} if self._kind == "message" else {}
            frames.append({"type": f"{_DELTAS[self._kind]}.done", **where, "content_index": 0, "text": text, **more})
            part = self._part(self._kind, text)
            frames.append({"type": "response.content_part.done", **where, "content_index": 0, "part": part})
        item = self._item(status, text)
        frames.append({"type": "response.output_item.done", "output_index": len(self._done), "item": item})
        self._done.append(item)
        self._kind = ""
        return frames

    def _begin(self, kind: str, prefix: str, head: dict[str, Any]) -> list[Frame]:
        self._kind, self._id, self._head, self._parts = kind, prefix + secrets.token_hex(16), head, []
        frames: list[Frame] = [
            {"type": "response.output_item.added", "output_index": len(self._done), "item": self._item("in_progress", None)}
        ]
        if kind in _PARTS:
            where = {"item_id": self._id, "output_index": len(self._done), "content_index": 0}
            frames.append({"type": "response.content_part.added", **where, "part": self._part(kind, "")})
        return frames

    def _text_delta(self, text: str) -> Frame:
        frame = self._delta(f"{_DELTAS[self._kind]}.delta", text)
        frame["content_index"] = 0
        if self._kind == "message":
            frame["logprobs"] = []
        return frame

    def _delta(self, type: str, text: str) -> Frame:
        self._parts.append(text)
        return {"type": type, "item_id": self._id, "output_index": len(self._done), "delta": text}

    def _item(self, status: str, text: str | None) -> dict[str, Any]:
        """The item with its text, or as it is when it begins."""
        head = {"id": self._id, "type": self._kind, "status": status}
        if self._kind == "function_call":
            return {**head, **self._head, "arguments": text or ""}
        content = [] if text is None else [self._part(self._kind, text)]
        if self._kind == "reasoning":
            return {**head, "summary": [], "content": content, "encrypted_content": None}
        return {**head, "role": "assistant", "content": content}

    @staticmethod
    def _part(kind: str, text: str) -> dict[str, Any]:
        more: dict[str, Any] = {"annotations": [], "logprobs": []} if kind == "message" else {}
        return {"type": _PARTS[kind], "text": text, **more}
