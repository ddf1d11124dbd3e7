"""Replies of `/v1/chat/completions`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from puna.api.figures import progress_object, timings_object, usage_object
from puna.api.openai.decode import Logprobs
from puna.api.openai.envelope import Envelope, all_ended, finish_reason
from puna.api.openai.schema import ChatCompletionRequest
from puna.api.probs import probs_list
from puna.api.replies import DONE
from puna.service.answers import Answer
from puna.service.ports import Tokenizer
from puna.service.running import Running
from puna.types import Chunk, TokenProb


class ChatEncoder:
    """Encodes the answers to one request."""

    def __init__(self, body: ChatCompletionRequest, logprobs: Logprobs, *, n: int, model: str, tokenizer: Tokenizer) -> None:
        stream = body.stream is True
        self._envelope = Envelope(
            kind="chat.completion.chunk" if stream else "chat.completion", id_prefix="chatcmpl-", model=model
        )
        self._logprobs = logprobs
        self._post = body.post_sampling_probs is True
        self._include_usage = body.stream_options is not None and body.stream_options.include_usage is True
        self._timings_per_token = body.timings_per_token is True
        self._n = n
        self._tokenizer = tokenizer
        self._heads = [b'data: {"choices":[{"finish_reason":null,"index":%d,"delta":{"content":' % index for index in range(n)]
        self._tail = b"}}]" + self._envelope.tail

    async def frames(self, running: Running) -> AsyncIterator[bytes]:
        """Server-sent events, all that one step brought in one piece."""
        answers = [Answer(index, generation) for index, generation in enumerate(running.generations)]
        began = False
        async for batch in running:
            parts: list[bytes] = []
            if not began:
                began = True
                parts += (self._role(index) for index in range(self._n))
            for index, chunk in batch:
                answer = answers[index]
                answer.feed(chunk)
                if chunk.progress is not None:
                    parts.append(self._delta(index, {}, prompt_progress=progress_object(chunk.progress)))
                if chunk.text or chunk.probs:
                    parts.append(self._text(answer, chunk))
                if chunk.stop_type != "none":
                    parts.append(self._finish(answer))
            yield b"".join(parts)
        if self._include_usage and all_ended(answers):
            usage = usage_object(answers, self._n)
            yield self._envelope.frame([], usage=usage, timings=timings_object(answers[0].timings)) + DONE
        else:
            yield DONE

    def whole(self, answers: Sequence[Answer]) -> bytes:
        """The reply to a request that does not stream."""
        choices: list[dict[str, Any]] = []
        for answer in answers:
            choice: dict[str, Any] = {
                "finish_reason": finish_reason(answer.stop_type),
                "index": answer.index,
                "message": {"role": "assistant", "content": answer.text},
            }
            if self._logprobs.wanted:
                choice["logprobs"] = self._content(answer.probs)
            choices.append(choice)
        return self._envelope.whole(choices, usage=usage_object(answers, self._n), timings=timings_object(answers[0].timings))

    def _content(self, probs: Sequence[TokenProb]) -> dict[str, Any]:
        return {"content": probs_list(self._tokenizer, probs, n_top=self._logprobs.n_top, post=self._post)}

    def _delta(self, index: int, delta: dict[str, Any], **more: Any) -> bytes:
        return self._envelope.frame([{"finish_reason": None, "index": index, "delta": delta}], **more)

    def _role(self, index: int) -> bytes:
        return self._delta(index, {"role": "assistant", "content": None})

    def _text(self, answer: Answer, chunk: Chunk) -> bytes:
        if not self._logprobs.wanted and not self._timings_per_token:
            return self._heads[answer.index] + msgspec.json.encode(chunk.text) + self._tail
        choice: dict[str, Any] = {"finish_reason": None, "index": answer.index, "delta": {"content": chunk.text}}
        if self._logprobs.wanted:
            choice["logprobs"] = self._content(chunk.probs)
        if not self._timings_per_token:
            return self._envelope.frame([choice])
        return self._envelope.frame([choice], timings=timings_object(answer.timings))

    def _finish(self, answer: Answer) -> bytes:
        choice = {"finish_reason": finish_reason(answer.stop_type), "index": answer.index, "delta": {}}
        return self._envelope.frame([choice], timings=timings_object(answer.timings))
