"""Replies of `/v1/completions`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from puna.api.decode import Decoded
from puna.api.figures import progress_object
from puna.api.openai.decode import LegacyPrompts
from puna.api.openai.envelope import Envelope, finish_reason
from puna.api.openai.legacy_logprobs import LegacyLogprobs
from puna.api.openai.schema import LegacyCompletionRequest
from puna.service.answers import Answer
from puna.service.ports import Tokenizer
from puna.service.running import Running
from puna.types import Chunk


class CompletionEncoder:
    """Encodes the answers to one request."""

    def __init__(
        self, body: LegacyCompletionRequest, decoded: Decoded, prompts: LegacyPrompts, *, model: str, tokenizer: Tokenizer
    ) -> None:
        n = decoded.params.n
        self._envelope = Envelope(body, kind="text_completion", id_prefix="cmpl-", model=model, tokenizer=tokenizer, n=n)
        self._echo = body.echo is True
        self._scored = decoded.params.prompt_probs
        self._return_tokens = body.return_tokens is True
        self._wants_probs = decoded.logprobs.wanted
        self._echoes = [echo for echo in prompts.echoes for _ in range(n)]
        self._suffix = prompts.suffix
        post = body.post_sampling_probs is True
        self._arrays = [LegacyLogprobs(tokenizer, decoded.logprobs.n_top, post=post) for _ in self._echoes]
        self._tails = [
            b',"index":%d,"logprobs":null,"finish_reason":null}]' % index + self._envelope.tail
            for index in range(len(self._echoes))
        ]

    async def frames(self, running: Running) -> AsyncIterator[bytes]:
        """Server-sent events, all that one step brought in one piece."""
        answers = [Answer(index, generation) for index, generation in enumerate(running.generations)]
        unechoed = {index for index, text in enumerate(self._echoes) if text or self._scored}
        async for batch in running:
            parts: list[bytes] = []
            for index, chunk in batch:
                answer = answers[index]
                answer.feed(chunk)
                if index in unechoed and (not self._scored or len(answer.prompt_probs) == answer.n_prompt - 1):
                    unechoed.remove(index)
                    parts.append(self._piece(answer, self._echoes[index], self._echo_arrays(answer)))
                parts += self._parts(answer, chunk)
            yield b"".join(parts)
        yield self._envelope.end(answers)

    def whole(self, answers: Sequence[Answer]) -> bytes:
        """The reply to a request that does not stream."""
        choices: list[dict[str, Any]] = []
        for answer in answers:
            echoed = self._echo_arrays(answer)
            arrays = self._arrays[answer.index].feed(answer.probs) if self._wants_probs else None
            if echoed is not None and arrays is not None:
                arrays = {name: [*echoed[name], *values] for name, values in arrays.items()}
            text = self._echoes[answer.index] + answer.text + self._suffix
            choices.append(self._choice(answer.index, text, arrays, finish_reason(answer.stop_type), answer.tokens))
        return self._envelope.whole(choices, answers)

    def _parts(self, answer: Answer, chunk: Chunk) -> list[bytes]:
        """The events that a chunk makes."""
        parts: list[bytes] = []
        if chunk.progress is not None:
            choice = self._choice(answer.index, "", None, None)
            parts.append(self._envelope.frame(choice, prompt_progress=progress_object(chunk.progress)))
        if chunk.text or chunk.probs or (self._return_tokens and chunk.tokens):
            arrays = self._arrays[answer.index].feed(chunk.probs) if self._wants_probs else None
            parts.append(self._piece(answer, chunk.text, arrays, chunk.tokens))
        if chunk.stop_type != "none":
            if self._suffix:
                parts.append(self._piece(answer, self._suffix, None))
            choice = self._choice(answer.index, "", None, finish_reason(chunk.stop_type))
            parts.append(self._envelope.finish(choice, answer))
        return parts

    def _piece(self, answer: Answer, text: str, arrays: dict[str, Any] | None, tokens: Sequence[int] = ()) -> bytes:
        if arrays is None and self._envelope.bare:
            return b'data: {"choices":[{"text":' + msgspec.json.encode(text) + self._tails[answer.index]
        return self._envelope.text(self._choice(answer.index, text, arrays, None, tokens), answer)

    def _echo_arrays(self, answer: Answer) -> dict[str, Any] | None:
        if not self._scored:
            return None
        return self._arrays[answer.index].echo(answer.generation.prompt, self._echoes[answer.index], answer.prompt_probs)

    def _choice(
        self, index: int, text: str, logprobs: dict[str, Any] | None, reason: str | None, tokens: Sequence[int] = ()
    ) -> dict[str, Any]:
        choice: dict[str, Any] = {"text": text, "index": index, "logprobs": logprobs, "finish_reason": reason}
        return {**choice, "tokens": tokens} if self._return_tokens else choice
