"""The body of the route, whether it came as JSON or as a form."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from puna.api.fields import MAX_SEED, Body, Free
from puna.api.numbers import Count, Number, Whole

Form = Literal["json", "text", "verbose_json", "srt", "vtt"]


class InputAudio(Body):
    """A sound in a JSON body."""

    data: str = Field(description="base64, or a data: URI")
    format: str | None = None


class TranscriptionRequest(Body):
    """A sound to be written down. In a form `file` is the sound; in JSON `input_audio` is."""

    model: str | None = None
    input_audio: InputAudio | None = None
    language: str | None = Field(default=None, max_length=100, description="what is spoken, such as `en`")
    prompt: str | None = Field(default=None, description="what came before, or names and words that are to be expected")
    response_format: Form | None = None
    stream: bool | None = None
    temperature: Number | None = None
    seed: Whole | None = Field(default=None, ge=-1, le=MAX_SEED)
    max_tokens: Count | None = Field(default=None, description="most tokens of the text")
    timestamp_granularities: list[str] | None = None
    include: list[str] | None = None
    chunking_strategy: Free = None
