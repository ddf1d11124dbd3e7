"""Replies of `/v1/chat/completions`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from puna.api.decode import Decoded
from puna.api.figures import progress_object
from puna.api.openai.chat_deltas import delta_of, finish_reason, message_object
from puna.api.openai.envelope import Envelope
from puna.api.openai.schema import ChatCompletionRequest
from puna.api.probs import probs_list
from puna.service.chat import Event, Text
from puna.service.chat_answers import ChatAnswer
from puna.service.chat_run import ChatRun
from puna.types import Chunk, TokenProb


class ChatEncoder:
    """Encodes the answers to one request."""

    def __init__(self, body: ChatCompletionRequest, decoded: Decoded, run: ChatRun, *, model: str) -> None:
        kind = "chat.completion.chunk" if body.stream else "chat.completion"
        self._n = n = decoded.params.n
        self._tokenizer = run.tokenizer
        self._envelope = Envelope(
            body, kind=kind, id_prefix="chatcmpl-", model=model, tokenizer=run.tokenizer, n=n, chat=_settings(run)
        )
        self._legacy = bool(body.functions)
        self._logprobs = decoded.logprobs
        self._post = body.post_sampling_probs is True
        self._return_tokens = body.return_tokens is True
        self._plain = self._envelope.bare and not self._logprobs.wanted
        self._heads = [b'data: {"choices":[{"finish_reason":null,"index":%d,"delta":{"content":' % index for index in range(n)]
        self._tail = b"}}]" + self._envelope.tail

    @property
    def id(self) -> str:
        """The reply's."""
        return self._envelope.id

    async def frames(self, run: ChatRun) -> AsyncIterator[bytes]:
        """Server-sent events, all that one step brought in one piece."""
        began = False
        async for batch in run:
            parts: list[bytes] = []
            if not began:
                began = True
                parts += (self._delta(index, {"role": "assistant", "content": None}) for index in range(self._n))
            for index, events, chunk in batch:
                if self._plain and len(events) == 1 and isinstance(event := events[0], Text):
                    parts.append(self._heads[index] + msgspec.json.encode(event.text) + self._tail)
                else:
                    parts += self._deltas(run.answers[index], events, chunk)
                if chunk.stop_type != "none":
                    answer = run.answers[index]
                    choice = {"finish_reason": finish_reason(answer, legacy=self._legacy), "index": index, "delta": {}}
                    parts.append(self._envelope.finish(choice, answer))
            yield b"".join(parts)
        yield self._envelope.end(run.answers)

    def whole(self, answers: Sequence[ChatAnswer]) -> bytes:
        """The reply to a request that does not stream."""
        choices: list[dict[str, Any]] = []
        for answer in answers:
            choice: dict[str, Any] = {
                "finish_reason": finish_reason(answer, legacy=self._legacy),
                "index": answer.index,
                "message": message_object(answer.message, legacy=self._legacy),
            }
            choices.append(self._extended(choice, answer.probs, answer.tokens))
        return self._envelope.whole(choices, answers)

    def _deltas(self, answer: ChatAnswer, events: Sequence[Event], chunk: Chunk) -> list[bytes]:
        """One frame for each event; what there is to say about tokens goes with the last one, or with none."""
        frames: list[bytes] = []
        if chunk.progress is not None:
            frames.append(self._delta(answer.index, {}, prompt_progress=progress_object(chunk.progress)))
        deltas = [delta for event in events if (delta := delta_of(event, legacy=self._legacy))]
        if not deltas and (chunk.probs or (self._return_tokens and chunk.tokens)):
            deltas = [{}]
        for position, delta in enumerate(deltas, 1):
            choice: dict[str, Any] = {"finish_reason": None, "index": answer.index, "delta": delta}
            if position == len(deltas):
                choice = self._extended(choice, chunk.probs, chunk.tokens)
            frames.append(self._envelope.text(choice, answer))
        return frames

    def _extended(self, choice: dict[str, Any], probs: Sequence[TokenProb], tokens: Sequence[int]) -> dict[str, Any]:
        """The choice with what was asked for about its tokens."""
        if self._logprobs.wanted:
            choice["logprobs"] = {"content": probs_list(self._tokenizer, probs, n_top=self._logprobs.n_top, post=self._post)}
        if self._return_tokens:
            choice["tokens"] = tokens
        return choice

    def _delta(self, index: int, delta: dict[str, Any], **more: Any) -> bytes:
        return self._envelope.frame({"finish_reason": None, "index": index, "delta": delta}, **more)


_FORMATS = {"apart": "auto", "inline": "none", "both": "deepseek-legacy"}


def _settings(run: ChatRun) -> dict[str, Any]:
    """How the output is read, under llama.cpp's names."""
    prepared = run.prepared
    thinking = prepared.params.thinking
    return {
        "chat_format": prepared.format,
        "reasoning_format": _FORMATS[prepared.turn.reasoning.shown],
        "reasoning_in_content": prepared.turn.reasoning.shown == "both",
        "reasoning_budget_tokens": thinking.budget if thinking is not None else -1,
        "generation_prompt": prepared.opened,
        "parse_tool_calls": prepared.turn.parse_calls,
    }
