"""Requests to embed made into neutral values."""

from __future__ import annotations

from typing import Any

import msgspec

from puna.api.embeddings.schema import EmbeddingRequest
from puna.api.media import decode_media, is_media
from puna.errors import InvalidRequest
from puna.service.chat import MediaPart
from puna.service.prompts import MediaPrompt, Written, split_prompts
from puna.types import ModelFacts


class Wish(msgspec.Struct, frozen=True):
    """What is to be embedded, and how the vectors are wanted."""

    inputs: list[Written]
    param: str
    """The field that they came in."""
    dimensions: int | None
    norm: int
    base64: bool
    truncate: bool


def decode(body: EmbeddingRequest, facts: ModelFacts, default_norm: int) -> Wish:
    """Raises `InvalidRequest` that names the field."""
    param = "input" if body.input is not None else "content"
    value = body.input if body.input is not None else body.content
    if value is None:
        raise InvalidRequest("Field 'input': Field required", param="input")
    if body.dimensions is not None and body.dimensions > facts.n_embd_out:
        raise InvalidRequest(
            f"Field 'dimensions': this model's vectors have {facts.n_embd_out}, {body.dimensions} are asked for",
            param="dimensions",
        )
    return Wish(
        inputs=_inputs(value, param),
        param=param,
        dimensions=body.dimensions,
        norm=_norm(body, facts, default_norm),
        base64=body.encoding_format == "base64",
        truncate=body.truncate is True,
    )


def _norm(body: EmbeddingRequest, facts: ModelFacts, default: int) -> int:
    if body.embd_normalize is not None:
        return body.embd_normalize
    if body.normalize is not None:
        return default if body.normalize and default >= 0 else 2 if body.normalize else -1
    # vectors of single tokens are wanted as they are unless somebody says otherwise
    return -1 if facts.pooling == "none" else default


def _inputs(value: Any, param: str) -> list[Written]:
    if isinstance(value, dict):
        return [_object(value, param)]
    if not isinstance(value, list) or not any(isinstance(item, dict) for item in value):
        return split_prompts(value, param=param)
    inputs: list[Written] = []
    for index, item in enumerate(value):
        at = f"{param}.{index}"
        inputs += [_object(item, at)] if isinstance(item, dict) else split_prompts([item], param=at)
    return inputs


def _object(value: dict[str, Any], param: str) -> Written:
    """An input that is an object: a text under one of its names, parts, or what the native routes take."""
    if "text" in value:
        return _string(value["text"], f"{param}.text")
    content = value.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return split_prompts(value, param=param)[0]
    pieces: list[str | MediaPart] = []
    for index, part in enumerate(content):
        at = f"{param}.content.{index}"
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            raise InvalidRequest(f"Field '{at}': an object with a type is expected", param=at)
        if is_media(part["type"]):
            pieces.append(decode_media(part, at))
        elif part["type"] in ("text", "input_text"):
            pieces.append(_string(part.get("text"), f"{at}.text"))
        else:
            raise InvalidRequest(
                f"Field '{at}.type': a part of type 'text', 'image_url' or 'input_audio' is expected", param=f"{at}.type"
            )
    if not any(isinstance(piece, MediaPart) for piece in pieces):
        return "".join(piece for piece in pieces if isinstance(piece, str))
    return MediaPrompt(tuple(piece for piece in pieces if piece != ""))


def _string(value: Any, param: str) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"Field '{param}': a text is expected", param=param)
    return value
