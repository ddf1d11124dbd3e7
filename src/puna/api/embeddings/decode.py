"""Requests to embed made into neutral values."""

from __future__ import annotations

from typing import Any

import msgspec

from puna.api.embeddings.schema import EmbeddingRequest
from puna.errors import InvalidRequest, NotSupported
from puna.service.prompts import Prompt, split_prompts
from puna.types import ModelFacts


class Wish(msgspec.Struct, frozen=True):
    """What is to be embedded, and how the vectors are wanted."""

    inputs: list[Prompt]
    param: str
    """The field that they came in."""
    dimensions: int | None
    norm: int
    base64: bool
    truncate: bool


def decode(body: EmbeddingRequest, facts: ModelFacts, default_norm: int) -> Wish:
    """Raises `InvalidRequest` or `NotSupported` that names the field."""
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
        inputs=split_prompts(_plain(value, param), param=param),
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


def _plain(value: Any, param: str) -> Any:
    """The same with objects that hold a text made into it."""
    if isinstance(value, dict):
        return _text(value, param)
    if isinstance(value, list):
        return [_text(item, f"{param}.{index}") if isinstance(item, dict) else item for index, item in enumerate(value)]
    return value


def _text(value: dict[str, Any], param: str) -> Any:
    if "text" in value:
        return _string(value["text"], f"{param}.text")
    content = value.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return value
    texts: list[str] = []
    for index, part in enumerate(content):
        at = f"{param}.content.{index}"
        if not isinstance(part, dict) or not isinstance(part.get("type"), str):
            raise InvalidRequest(f"Field '{at}': an object with a type is expected", param=at)
        if part["type"] != "text":
            raise NotSupported(f"Field '{at}': this model reads text only", param=at)
        texts.append(_string(part.get("text"), f"{at}.text"))
    return "".join(texts)


def _string(value: Any, param: str) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"Field '{param}': a text is expected", param=param)
    return value
