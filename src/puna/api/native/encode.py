"""Native replies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from puna.api.figures import progress_object, timings_object
from puna.api.native.schema import CompletionRequest
from puna.api.native.settings import settings_object
from puna.api.probs import probs_list
from puna.service.answers import Answer
from puna.service.ports import Tokenizer
from puna.service.running import Running
from puna.types import Chunk


class CompletionEncoder:
    """Encodes the answers to one `/completion` request."""

    def __init__(self, body: CompletionRequest, *, model: str, tokenizer: Tokenizer) -> None:
        self._stream = body.stream is True
        self._return_tokens = body.return_tokens is True
        self._timings_per_token = body.timings_per_token is True
        self._fields = body.response_fields or []
        self._model = model
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
                    parts += (b"data: ", msgspec.json.encode(self._partial(answer, chunk)), b"\n\n")
                if chunk.stop_type != "none":
                    parts += (b"data: ", msgspec.json.encode(self.final(answer)), b"\n\n")
            yield b"".join(parts)

    def whole(self, answers: Sequence[Answer]) -> bytes:
        """The reply to a request that does not stream: an object, or a list where there are several answers."""
        objects = [self.final(answer) for answer in answers]
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

    def final(self, answer: Answer) -> dict[str, Any]:
        """The object that ends an answer. What a stream has sent already is not sent again."""
        generation = answer.generation
        sampling = generation.sampling
        text = answer.text
        value: dict[str, Any] = {
            "index": answer.index,
            "content": "" if self._stream else text,
            "tokens": answer.tokens if self._return_tokens and not self._stream else [],
            "id_slot": answer.slot,
            "stop": True,
            "model": self._model,
            "tokens_predicted": answer.n_predicted,
            "tokens_evaluated": answer.n_prompt,
            "generation_settings": settings_object(generation, stream=self._stream, timings_per_token=self._timings_per_token),
            "prompt": self._tokenizer.detokenize(generation.prompt),
            "has_new_line": "\n" in text,
            "truncated": answer.truncated,
            "stop_type": answer.stop_type,
            "stopping_word": answer.stopping_word,
            "tokens_cached": answer.n_prompt + max(0, answer.n_predicted - 1),
            "timings": timings_object(answer.timings),
        }
        if answer.probs and not self._stream:
            value["completion_probabilities"] = probs_list(
                self._tokenizer, answer.probs, n_top=sampling.n_probs, post=sampling.post_sampling_probs
            )
        return choose_fields(value, self._fields) if self._fields else value


def choose_fields(value: dict[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """Only the fields asked for. `a/b` is found under that name and under `b`; what does not exist is left out."""
    chosen: dict[str, Any] = {}
    for path in paths:
        found: Any = value
        for key in path.split("/"):
            if not isinstance(found, dict) or key not in found:
                break
            found = found[key]
        else:
            chosen[path] = found
            chosen.setdefault(path.rpartition("/")[2], found)
    return chosen
