"""Replies of `/v1/chat/completions`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from puna.api.decode import Decoded
from puna.api.figures import progress_object
from puna.api.openai.envelope import Envelope, finish_reason
from puna.api.openai.schema import ChatCompletionRequest
from puna.api.probs import probs_list
from puna.service.answers import Answer
from puna.service.ports import Tokenizer
from puna.service.running import Running
from puna.types import Chunk, TokenProb


class ChatEncoder:
    """Encodes the answers to one request."""

    def __init__(self, body: ChatCompletionRequest, decoded: Decoded, *, model: str, tokenizer: Tokenizer) -> None:
        kind = "chat.completion.chunk" if body.stream else "chat.completion"
        self._n = n = decoded.params.n
        self._envelope = Envelope(body, kind=kind, id_prefix="chatcmpl-", model=model, tokenizer=tokenizer, n=n)
        self._logprobs = decoded.logprobs
        self._post = body.post_sampling_probs is True
        self._return_tokens = body.return_tokens is True
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
                parts += (self._delta(index, {"role": "assistant", "content": None}) for index in range(self._n))
            for index, chunk in batch:
                answer = answers[index]
                answer.feed(chunk)
                if chunk.progress is not None:
                    parts.append(self._delta(index, {}, prompt_progress=progress_object(chunk.progress)))
                if chunk.text or chunk.probs or (self._return_tokens and chunk.tokens):
                    parts.append(self._text(answer, chunk))
                if chunk.stop_type != "none":
                    choice = {"finish_reason": finish_reason(answer.stop_type), "index": answer.index, "delta": {}}
                    parts.append(self._envelope.finish(choice, answer))
            yield b"".join(parts)
        yield self._envelope.end(answers)

    def whole(self, answers: Sequence[Answer]) -> bytes:
        """The reply to a request that does not stream."""
        choices: list[dict[str, Any]] = []
        for answer in answers:
            choice: dict[str, Any] = {
                "finish_reason": finish_reason(answer.stop_type),
                "index": answer.index,
                "message": {"role": "assistant", "content": answer.text},
            }
            choices.append(self._extended(choice, answer.probs, answer.tokens))
        return self._envelope.whole(choices, answers)

    def _extended(self, choice: dict[str, Any], probs: Sequence[TokenProb], tokens: Sequence[int]) -> dict[str, Any]:
        """The choice with what was asked for about its tokens."""
        if self._logprobs.wanted:
            choice["logprobs"] = {"content": probs_list(self._tokenizer, probs, n_top=self._logprobs.n_top, post=self._post)}
        if self._return_tokens:
            choice["tokens"] = tokens
        return choice

    def _delta(self, index: int, delta: dict[str, Any], **more: Any) -> bytes:
        return self._envelope.frame({"finish_reason": None, "index": index, "delta": delta}, **more)

    def _text(self, answer: Answer, chunk: Chunk) -> bytes:
        if self._envelope.bare and not self._logprobs.wanted:
            return self._heads[answer.index] + msgspec.json.encode(chunk.text) + self._tail
        choice = {"finish_reason": None, "index": answer.index, "delta": {"content": chunk.text}}
        return self._envelope.text(self._extended(choice, chunk.probs, chunk.tokens), answer)
