"""Replies of `/v1/completions`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from puna.api.figures import progress_object, timings_object, usage_object
from puna.api.openai.decode import Logprobs
from puna.api.openai.envelope import Envelope, all_ended, finish_reason
from puna.api.openai.legacy_logprobs import LegacyLogprobs
from puna.api.openai.schema import LegacyCompletionRequest
from puna.api.replies import DONE
from puna.service.answers import Answer
from puna.service.ports import Tokenizer
from puna.service.running import Running
from puna.types import Chunk


class CompletionEncoder:
    """Encodes the answers to one request."""

    def __init__(
        self,
        body: LegacyCompletionRequest,
        logprobs: Logprobs,
        *,
        n: int,
        echoes: Sequence[str],
        model: str,
        tokenizer: Tokenizer,
    ) -> None:
        """`echoes`: for each answer the text that is put before it."""
        self._envelope = Envelope(kind="text_completion", id_prefix="cmpl-", model=model)
        self._logprobs = logprobs
        self._include_usage = body.stream_options is not None and body.stream_options.include_usage is True
        self._timings_per_token = body.timings_per_token is True
        self._n = n
        self._echoes = echoes
        self._arrays = [LegacyLogprobs(tokenizer, logprobs.n_top) for _ in echoes]
        self._tails = [
            b',"index":%d,"logprobs":null,"finish_reason":null}]' % index + self._envelope.tail for index in range(len(echoes))
        ]

    async def frames(self, running: Running) -> AsyncIterator[bytes]:
        """Server-sent events, all that one step brought in one piece."""
        answers = [Answer(index, generation) for index, generation in enumerate(running.generations)]
        began = False
        async for batch in running:
            parts: list[bytes] = []
            if not began:
                began = True
                parts += (self._plain(index, text) for index, text in enumerate(self._echoes) if text)
            for index, chunk in batch:
                answer = answers[index]
                answer.feed(chunk)
                if chunk.progress is not None:
                    choice = self._choice(index, "", None, None)
                    parts.append(self._envelope.frame([choice], prompt_progress=progress_object(chunk.progress)))
                if chunk.text or chunk.probs:
                    parts.append(self._text(answer, chunk))
                if chunk.stop_type != "none":
                    choice = self._choice(index, "", None, finish_reason(chunk.stop_type))
                    parts.append(self._envelope.frame([choice], timings=timings_object(answer.timings)))
            yield b"".join(parts)
        if self._include_usage and all_ended(answers):
            usage = usage_object(answers, self._n)
            yield self._envelope.frame([], usage=usage, timings=timings_object(answers[0].timings)) + DONE
        else:
            yield DONE

    def whole(self, answers: Sequence[Answer]) -> bytes:
        """The reply to a request that does not stream."""
        choices = [
            self._choice(
                answer.index,
                self._echoes[answer.index] + answer.text,
                self._arrays[answer.index].feed(answer.probs) if self._logprobs.wanted else None,
                finish_reason(answer.stop_type),
            )
            for answer in answers
        ]
        return self._envelope.whole(choices, usage=usage_object(answers, self._n), timings=timings_object(answers[0].timings))

    @staticmethod
    def _choice(index: int, text: str, logprobs: dict[str, Any] | None, reason: str | None) -> dict[str, Any]:
        return {"text": text, "index": index, "logprobs": logprobs, "finish_reason": reason}

    def _plain(self, index: int, text: str) -> bytes:
        return b'data: {"choices":[{"text":' + msgspec.json.encode(text) + self._tails[index]

    def _text(self, answer: Answer, chunk: Chunk) -> bytes:
        index = answer.index
        if not self._logprobs.wanted and not self._timings_per_token:
            return self._plain(index, chunk.text)
        arrays = self._arrays[index].feed(chunk.probs) if self._logprobs.wanted else None
        choice = self._choice(index, chunk.text, arrays, None)
        if not self._timings_per_token:
            return self._envelope.frame([choice])
        return self._envelope.frame([choice], timings=timings_object(answer.timings))
