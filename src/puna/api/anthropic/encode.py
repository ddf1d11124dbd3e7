"""Replies of `/v1/messages`."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from puna.api.anthropic.blocks import Blocks
from puna.service.chat_answers import ChatAnswer
from puna.service.chat_run import ChatRun, Step


class MessageEncoder:
    """Encodes the answer to one request."""

    def __init__(self, run: ChatRun, *, model: str, show_thinking: bool) -> None:
        self.id = "msg_" + secrets.token_urlsafe(18)
        self._run = run
        self._model = model
        self._blocks = Blocks(show_thinking=show_thinking)

    async def frames(self) -> AsyncIterator[bytes]:
        """Server-sent events, all that one step brought in one piece. Each has a line with its type."""
        began = False
        async for batch in self._run:
            frames: list[dict[str, Any]] = []
            if not began:
                began = True
                frames.append({"type": "message_start", "message": self._message([], None, None)})
            for step in batch:
                frames += self._step(step)
            if frames:
                yield b"".join(map(_frame, frames))

    async def whole(self) -> bytes:
        """The reply to a request that does not stream."""
        try:
            async for batch in self._run:
                for step in batch:
                    self._step(step)
        finally:
            await self._run.aclose()
        reason, sequence = _stop(self._answer)
        value = self._message(self._blocks.content, reason, sequence)
        return msgspec.json.encode({**value, **_warnings(self._answer)})

    @property
    def _answer(self) -> ChatAnswer:
        return self._run.answers[0]

    def _step(self, step: Step) -> list[dict[str, Any]]:
        _, events, chunk = step
        frames = self._blocks.feed(events)
        if chunk.stop_type != "none":
            reason, sequence = _stop(self._answer)
            frames += self._blocks.finish()
            delta = {"stop_reason": reason, "stop_sequence": sequence}
            frames.append({"type": "message_delta", "delta": delta, "usage": self._usage(), **_warnings(self._answer)})
            frames.append({"type": "message_stop"})
        return frames

    def _message(self, content: list[dict[str, Any]], reason: str | None, sequence: str | None) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": content,
            "stop_reason": reason,
            "stop_sequence": sequence,
            # A message that begins has no tokens, even if the first ones came with the news of its beginning.
            "usage": self._usage() if reason is not None else {**self._usage(), "output_tokens": 0},
        }

    def _usage(self) -> dict[str, int]:
        answer = self._answer
        cached = answer.progress.cache if answer.progress is not None else answer.timings.cache_n
        cached = min(cached, answer.n_prompt)
        return {
            "input_tokens": answer.n_prompt - cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cached,
            "output_tokens": answer.n_predicted,
        }


def _stop(answer: ChatAnswer) -> tuple[str, str | None]:
    """Why the answer ended, and the stop sequence that did it."""
    if answer.stop_type == "limit":
        return "max_tokens", None
    if answer.finish == "tool_calls":
        return "tool_use", None
    return ("stop_sequence", answer.stopping_word) if answer.stop_type == "word" else ("end_turn", None)


def _warnings(answer: ChatAnswer) -> dict[str, Any]:
    constraint = answer.generation.constraint
    return {"warnings": constraint.warnings} if constraint is not None and constraint.warnings else {}


def _frame(value: dict[str, Any]) -> bytes:
    kind: str = value["type"]
    return b"event: " + kind.encode() + b"\ndata: " + msgspec.json.encode(value) + b"\n\n"
