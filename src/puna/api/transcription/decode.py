"""Requests made into a chat turn that asks for what is said."""

from __future__ import annotations

from typing import Any, NoReturn

from puna.api import body as bodies
from puna.api.decode import decode_generation
from puna.api.fields import GenerationFields
from puna.api.logprobs import Logprobs
from puna.api.multipart import Form, is_multipart, parse_form
from puna.api.transcription.schema import TranscriptionRequest
from puna.errors import InvalidRequest
from puna.service.chat import Conversation, MediaPart, Message, content_of
from puna.service.chat_turn import ChatTurn, ReasoningOptions
from puna.service.service import Service

INSTRUCTION = "Transcribe the audio to text, word for word. Answer with the transcript only."

LFM2 = "<|tool_list_start|>"
"""Is in the templates of a family that was trained on one way only to be asked."""

_NUMBERS = {"temperature": float, "seed": int, "max_tokens": int}
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_LISTS = ("timestamp_granularities", "include")


def read_request(raw: bytes, content_type: str) -> tuple[TranscriptionRequest, MediaPart]:
    """The fields and the sound. Raises `InvalidRequest` that names the field."""
    if not is_multipart(content_type) and raw.lstrip()[:1] == b"{":
        fields = bodies.validate(TranscriptionRequest, bodies.parse(raw))
        if fields.input_audio is None:
            _refuse("input_audio", "Field required")
        return fields, MediaPart("audio", fields.input_audio.data, "input_audio", "input_audio.data")
    form = parse_form(raw, content_type)
    fields = bodies.validate(TranscriptionRequest, _values(form))
    file = form.files.get("file")
    if file is None:
        _refuse("file", "a file is expected" if "file" in form.values else "Field required")
    return fields, MediaPart("audio", file.data, "file", "file")


def _values(form: Form) -> dict[str, Any]:
    """Values of a form, all of which are texts, as JSON would have them; what is empty is left out."""
    values: dict[str, Any] = {}
    for name, texts in form.values.items():
        if name in _LISTS:
            values[name] = texts
        elif name in TranscriptionRequest.model_fields and name != "input_audio" and texts[0] != "":
            values[name] = _value(name, texts[0])
    return values


def _value(name: str, text: str) -> Any:
    if name == "stream":
        return _BOOLEANS.get(text.strip().lower(), text)
    kind = _NUMBERS.get(name)
    if kind is None:
        return text
    try:
        return kind(text)
    except ValueError:
        return text  # which is refused with the field's name


def decode_turn(service: Service, body: TranscriptionRequest, sound: MediaPart) -> ChatTurn:
    """The turn that answers. Raises `InvalidRequest` that names the field."""
    _check(body)
    values = {name: value for name in ("seed", "max_tokens") if (value := getattr(body, name)) is not None}
    values["temperature"] = body.temperature or 0.0
    logprobs = Logprobs(wanted=body.response_format == "verbose_json")
    decoded = decode_generation(GenerationFields.model_construct(**values), service, logprobs=logprobs, bias_texts=False)
    return ChatTurn(
        conversation=Conversation(messages=_messages(service, body, sound), add_generation_prompt=True),
        reasoning=ReasoningOptions(enabled=False),
        params=decoded.params,
    )


def _check(body: TranscriptionRequest) -> None:
    if body.stream and body.response_format not in (None, "json", "text"):
        _refuse("response_format", "a stream is of 'json' or 'text' only: times are known at the end")
    for item in body.timestamp_granularities or ():
        if item != "segment":
            _refuse("timestamp_granularities", "only 'segment' is known: the model does not say when a word was spoken")
    if body.include:
        _refuse("include", "probabilities are not given by this route")
    if body.chunking_strategy not in (None, "auto"):
        _refuse("chunking_strategy", "sounds are taken whole; 'auto' is expected")


def _messages(service: Service, body: TranscriptionRequest, sound: MediaPart) -> tuple[Message, ...]:
    if LFM2 in service.chat.template.source:
        return Message(role="system", content="Perform ASR."), Message(role="user", content=content_of([sound]))
    asked = [INSTRUCTION]
    if body.language:
        asked.append(f"Language: {body.language}")
    if body.prompt:
        asked.append(f"Context: {body.prompt}")
    return (Message(role="user", content=content_of(["\n".join(asked), sound])),)


def _refuse(field: str, reason: str) -> NoReturn:
    raise InvalidRequest(f"Field '{field}': {reason}", param=field)
