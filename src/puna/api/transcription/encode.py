"""Transcripts in the forms that clients ask for."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from statistics import fmean
from typing import Any

import msgspec
from starlette.responses import Response

from puna.api.replies import Json
from puna.api.transcription.schema import TranscriptionRequest
from puna.api.transcription.trimmed import Trimmed
from puna.service.chat import Text
from puna.service.chat_answers import ChatAnswer
from puna.service.chat_run import ChatRun

UNKNOWN = "unknown"
"""The language where nobody named it."""


class TranscriptEncoder:
    """Encodes one transcript."""

    def __init__(self, body: TranscriptionRequest, run: ChatRun, *, rate: int) -> None:
        """`rate` is that of the prepared sound, in samples a second."""
        self._body = body
        self._run = run
        self._seconds = sum(len(sound.data) / 4 / rate for sound in run.prepared.media)

    async def whole(self) -> Response:
        """The reply to a request that does not stream."""
        (answer,) = await self._run.collect()
        text = (answer.message.text).strip()
        form = self._body.response_format
        if form == "text":
            return _plain(text)
        if form == "srt":
            return _plain(f"1\n{_time(0, ',')} --> {_time(self._seconds, ',')}\n{text}\n", "application/x-subrip")
        if form == "vtt":
            return _plain(f"WEBVTT\n\n{_time(0, '.')} --> {_time(self._seconds, '.')}\n{text}\n", "text/vtt")
        if form == "verbose_json":
            return Json(self._verbose(text, answer))
        return Json({"text": text, "usage": self._usage(answer)})

    async def frames(self) -> AsyncIterator[bytes]:
        """Server-sent events: text as it comes, then all of it."""
        trimmed = Trimmed()
        parts: list[str] = []
        async for batch in self._run:
            text = trimmed.feed("".join(event.text for _, events, _ in batch for event in events if isinstance(event, Text)))
            if text:
                parts.append(text)
                yield _frame({"type": "transcript.text.delta", "delta": text})
        usage = self._usage(self._run.answers[0])
        yield _frame({"type": "transcript.text.done", "text": "".join(parts), "usage": usage})

    def _verbose(self, text: str, answer: ChatAnswer) -> dict[str, Any]:
        """With the times that are known, which are those of the whole."""
        segment = {
            "id": 0,
            "seek": 0,
            "start": 0.0,
            "end": round(self._seconds, 3),
            "text": text,
            "tokens": answer.tokens,
            "temperature": self._body.temperature or 0.0,
            "avg_logprob": fmean(entry.logprob for entry in answer.probs) if answer.probs else None,
            "compression_ratio": _compression(text),
            "no_speech_prob": None,  # which the model does not tell
        }
        return {
            "task": "transcribe",
            "language": self._body.language or UNKNOWN,
            "duration": round(self._seconds, 3),
            "text": text,
            "segments": [segment] if text else [],
            "usage": {"type": "duration", "seconds": round(self._seconds, 3)},
        }

    def _usage(self, answer: ChatAnswer) -> dict[str, Any]:
        n_text = len(self._run.prepared.prompt) - len(self._run.prepared.media)
        return {
            "type": "tokens",
            "input_tokens": answer.n_prompt,
            "output_tokens": answer.n_predicted,
            "total_tokens": answer.n_prompt + answer.n_predicted,
            "input_token_details": {"text_tokens": n_text, "audio_tokens": max(0, answer.n_prompt - n_text)},
        }


def _compression(text: str) -> float:
    """How many times shorter a text becomes: one that goes round in circles has a large number."""
    raw = text.encode()
    return len(raw) / len(zlib.compress(raw))


def _plain(text: str, kind: str = "text/plain") -> Response:
    return Response(text, media_type=f"{kind}; charset=utf-8")


def _time(seconds: float, separator: str) -> str:
    """Hours, minutes, seconds and thousandths."""
    thousandths = round(seconds * 1000)
    minutes, rest = divmod(thousandths, 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest // 1000:02}{separator}{rest % 1000:03}"


def _frame(value: dict[str, Any]) -> bytes:
    return b"data: " + msgspec.json.encode(value) + b"\n\n"
