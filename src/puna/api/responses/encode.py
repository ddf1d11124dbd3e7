"""Replies of `/v1/responses`."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from puna.api.responses.output import Frame, Output
from puna.api.responses.schema import ResponsesRequest
from puna.errors import ContextExceeded, PunaError
from puna.service.chat import Message
from puna.service.chat_answers import ChatAnswer
from puna.service.chat_run import ChatRun, Step

Keep = Callable[[str, bytes, Message], None]
"""What to do with a whole reply: its id, itself, and the turn that it was."""


class ResponseEncoder:
    """Encodes the answer to one request."""

    def __init__(self, body: ResponsesRequest, run: ChatRun, *, model: str, keep: Keep | None) -> None:
        """`keep` gets the reply once it is whole, be it sent as a stream or not; an answer that fails is not kept."""
        self.id = "resp_" + secrets.token_hex(24)
        self._run = run
        self._keep = keep
        self._output = Output()
        self._sequence = 0
        self._fixed = _fixed(body, run, self.id, model)

    async def frames(self) -> AsyncIterator[bytes]:
        """Server-sent events, all that one step brought in one piece. Each has a line with its type."""
        begin = self._response("in_progress", usage=False)
        yield self._encode([{"type": f"response.{word}", "response": begin} for word in ("created", "in_progress")])
        async for batch in self._run:
            frames: list[Frame] = []
            for step in batch:
                frames += self._step(step)
            if frames:
                yield self._encode(frames)

    async def whole(self) -> bytes:
        """The reply to a request that does not stream."""
        try:
            async for batch in self._run:
                for step in batch:
                    self._step(step)
        finally:
            await self._run.aclose()
        return msgspec.json.encode(self._response(self._status))

    def failed(self, error: PunaError) -> bytes:
        """The last event of a stream that fails."""
        code = "context_length_exceeded" if isinstance(error, ContextExceeded) else "server_error"
        response = {**self._response("failed"), "error": {"code": code, "message": error.message}}
        return self._encode([*self._output.finish("incomplete"), {"type": "response.failed", "response": response}])

    @property
    def _answer(self) -> ChatAnswer:
        return self._run.answers[0]

    @property
    def _status(self) -> str:
        return "incomplete" if self._answer.stop_type == "limit" else "completed"

    def _step(self, step: Step) -> list[Frame]:
        _, events, chunk = step
        frames = self._output.feed(events)
        if chunk.stop_type != "none":
            frames += self._output.finish(self._status)
            response = self._response(self._status)
            frames.append({"type": f"response.{self._status}", "response": response})
            if self._keep is not None:
                self._keep(self.id, msgspec.json.encode(response), self._answer.message)
        return frames

    def _response(self, status: str, *, usage: bool = True) -> dict[str, Any]:
        details = {"reason": "max_output_tokens"} if status == "incomplete" else None
        return {
            **self._fixed,
            "status": status,
            "completed_at": int(time.time()) if status == "completed" else None,
            "incomplete_details": details,
            "output": list(self._output.items),
            "usage": self._usage() if usage else None,
            **(_warnings(self._answer) if usage else {}),
        }

    def _usage(self) -> dict[str, Any]:
        answer = self._answer
        return {
            "input_tokens": answer.n_prompt,
            "input_tokens_details": {"cached_tokens": min(answer.timings.cache_n, answer.n_prompt), "cache_write_tokens": 0},
            "output_tokens": answer.n_predicted,
            "output_tokens_details": {"reasoning_tokens": answer.n_reasoning},
            "total_tokens": answer.n_prompt + answer.n_predicted,
        }

    def _encode(self, frames: list[Frame]) -> bytes:
        parts: list[bytes] = []
        for frame in frames:
            kind: str = frame["type"]
            value = {"type": kind, "sequence_number": self._sequence, **frame}
            self._sequence += 1
            parts.append(b"event: " + kind.encode() + b"\ndata: " + msgspec.json.encode(value) + b"\n\n")
        return b"".join(parts)


def _fixed(body: ResponsesRequest, run: ChatRun, id: str, model: str) -> dict[str, Any]:
    """What a response says from its beginning to its end."""
    sampling = run.prepared.params.sampling
    form = body.text.format if body.text is not None else None
    shown: dict[str, Any] = {"type": "text"}
    if form is not None and form.type != "text":
        shown = {key: value for key, value in form.model_dump(by_alias=True).items() if value is not None}
    return {
        "id": id,
        "object": "response",
        "created_at": int(time.time()),
        "background": False,
        "error": None,
        "instructions": body.instructions,
        "max_output_tokens": body.max_output_tokens,
        "max_tool_calls": body.max_tool_calls,
        "metadata": body.metadata or {},
        "model": model,
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "previous_response_id": body.previous_response_id,
        "reasoning": {
            "effort": body.reasoning.effort if body.reasoning is not None else None,
            "summary": body.reasoning.summary if body.reasoning is not None else None,
        },
        "service_tier": "default",
        "store": body.store is not False,
        "temperature": sampling.temperature,
        "text": {"format": shown, "verbosity": (body.text.verbosity if body.text is not None else None) or "medium"},
        "tool_choice": body.tool_choice if body.tool_choice is not None else "auto",
        "tools": [tool for tool in body.tools or () if tool.get("type") == "function"],
        "top_logprobs": 0,
        "top_p": sampling.top_p,
        "truncation": "disabled",
        "user": body.user,
    }


def _warnings(answer: ChatAnswer) -> dict[str, Any]:
    constraint = answer.generation.constraint
    return {"warnings": constraint.warnings} if constraint is not None and constraint.warnings else {}
