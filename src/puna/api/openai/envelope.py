"""What all chunks and the whole reply of one request have in common."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from puna.api.fields import GenerationFields
from puna.api.figures import progress_object, timings_object, usage_object
from puna.api.replies import DONE
from puna.api.result import ResultEncoder, choose_fields, warnings_object
from puna.service.answers import Answer
from puna.service.ports import Tokenizer
from puna.service.service import BUILD
from puna.types import StopType

_FINISH = {"eos": "stop", "word": "stop", "limit": "length"}


def finish_reason(stop_type: StopType) -> str:
    """OpenAI's word for why an answer ended."""
    return _FINISH.get(stop_type, "stop")


class Envelope:
    """Id, time and model of one request, and all that a reply has besides its choices."""

    def __init__(
        self,
        body: GenerationFields,
        *,
        kind: str,
        id_prefix: str,
        model: str,
        tokenizer: Tokenizer,
        n: int,
        chat: Mapping[str, Any] | None = None,
    ) -> None:
        """`kind` is the value of `object`; each prompt has `n` answers. `chat` is what is shown of a chat's settings."""
        self.id = id_prefix + secrets.token_urlsafe(24)
        self._fields = {
            "created": int(time.time()),
            "id": self.id,
            "model": model,
            "system_fingerprint": BUILD,
            "object": kind,
        }
        self.tail = b"," + msgspec.json.encode(self._fields)[1:] + b"\n\n"
        """Closes a frame that holds a `choices` list only."""
        self._chosen = body.response_fields or []
        self.bare = not (self._chosen or body.timings_per_token or body.return_tokens)
        """Whether a chunk of plain text has nothing but its choice."""
        self._include_usage = body.stream_options is not None and body.stream_options.include_usage is True
        self._timings_per_token = body.timings_per_token is True
        self._results = ResultEncoder(body, model=model, tokenizer=tokenizer, chat=chat)
        self._n = n
        self._details = chat is not None

    def frame(self, choice: dict[str, Any], **more: Any) -> bytes:
        """One whole event."""
        return self._event({"choices": (choice,), **self._fields, **more})

    def text(self, choice: dict[str, Any], answer: Answer) -> bytes:
        """An event with a piece of an answer."""
        return self.frame(choice, timings=timings_object(answer.timings)) if self._timings_per_token else self.frame(choice)

    def finish(self, choice: dict[str, Any], answer: Answer) -> bytes:
        """The event that ends an answer."""
        timings = timings_object(answer.timings)
        more = {**warnings_object([answer]), **self._results.verbose([answer], sent=True)}
        return self.frame(choice, timings=timings, **more)

    def end(self, answers: Sequence[Answer]) -> bytes:
        """What ends a stream: the usage, where it is asked for, and a word that it is over."""
        if not self._include_usage or any(answer.stop_type == "none" for answer in answers):
            return DONE
        usage = usage_object(answers, self._n, details=self._details)
        timings = timings_object(answers[0].timings)
        more = warnings_object(answers)
        return self._event({"choices": (), **self._fields, "usage": usage, "timings": timings, **more}) + DONE

    def whole(self, choices: Sequence[dict[str, Any]], answers: Sequence[Answer]) -> bytes:
        """The reply to a request that does not stream."""
        usage = usage_object(answers, self._n, details=self._details)
        timings = timings_object(answers[0].timings)
        more = {**warnings_object(answers), **self._results.verbose(answers, sent=False)}
        if answers[0].progress is not None:
            more["prompt_progress"] = progress_object(answers[0].progress)
        return self._encode({"choices": choices, **self._fields, "usage": usage, "timings": timings, **more})

    def _event(self, value: dict[str, Any]) -> bytes:
        return b"data: " + self._encode(value) + b"\n\n"

    def _encode(self, value: dict[str, Any]) -> bytes:
        return msgspec.json.encode(choose_fields(value, self._chosen) if self._chosen else value)
