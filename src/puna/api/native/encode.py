"""Native replies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from puna.api.fields import GenerationFields
from puna.api.figures import progress_object, timings_object
from puna.api.probs import probs_list
from puna.api.result import ResultEncoder, choose_fields
from puna.service.answers import Answer
from puna.service.ports import Tokenizer
from puna.service.running import Running
from puna.types import Chunk


class CompletionEncoder:
    """Encodes the answers to one request."""

    def __init__(self, body: GenerationFields, *, model: str, tokenizer: Tokenizer) -> None:
        self._results = ResultEncoder(body, model=model, tokenizer=tokenizer)
        self._stream = body.stream is True
        self._verbose = body.verbose is True
        self._timings_per_token = body.timings_per_token is True
        self._fields = body.response_fields or []
        self._tokenizer = tokenizer

    async def frames(self, running: Running) -> AsyncIterator[bytes]:
        """Server-sent events, all that one step brought in one piece; each answer ends with its final object."""
        answers = [Answer(index, generation) for index, generation in enumerate(running.generations)]
        async for batch in running:
            parts: list[bytes] = []
            for index, chunk in batch:
                answer = answers[index]
                answer.feed(chunk)
                if chunk.text or chunk.tokens or chunk.progress is not None:
                    parts.append(_frame(self._partial(answer, chunk)))
                if chunk.stop_type != "none":
                    parts.append(_frame(self._final(answer)))
            yield b"".join(parts)
        yield b"".join(_frame(self._final(answer)) for answer in answers if answer.stop_type == "none")

    def whole(self, answers: Sequence[Answer]) -> bytes:
        """The reply to a request that does not stream: an object, or a list where there are several answers."""
        objects = [self._final(answer) for answer in answers]
        return msgspec.json.encode(objects[0] if len(objects) == 1 else objects)

    def _partial(self, answer: Answer, chunk: Chunk) -> dict[str, Any]:
        sampling = answer.generation.sampling
        value: dict[str, Any] = {
            "index": answer.index,
            "content": chunk.text,
            "tokens": chunk.tokens,
            "stop": False,
            "id_slot": answer.slot,
            "tokens_predicted": answer.n_predicted,
            "tokens_evaluated": answer.n_prompt,
        }
        if self._timings_per_token and chunk.progress is None:
            value["timings"] = timings_object(answer.timings)
        if chunk.progress is not None:
            value["prompt_progress"] = progress_object(chunk.progress)
        if chunk.probs:
            post = sampling.post_sampling_probs
            value["completion_probabilities"] = probs_list(self._tokenizer, chunk.probs, n_top=sampling.n_probs, post=post)
        return value

    def _final(self, answer: Answer) -> dict[str, Any]:
        value = self._results.result(answer, sent=self._stream)
        if self._verbose:
            value["__verbose"] = {"prompt_tokens": answer.generation.prompt, "queue_ms": answer.timings.queue_ms}
        return choose_fields(value, self._fields) if self._fields else value


def _frame(value: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"
