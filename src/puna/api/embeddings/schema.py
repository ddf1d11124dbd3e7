"""Bodies of the routes that embed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from puna.api.fields import Body, LoraScale
from puna.api.numbers import INT32_MAX, Whole

_INPUT = {
    "description": "a text, a list of token ids, a list that mixes both, or a list of those",
    "anyOf": [{"type": "string"}, {"type": "array"}, {"type": "object"}],
}


class EmbeddingRequest(Body):
    """Make texts into vectors."""

    model: str | None = None
    input: Annotated[Any, WithJsonSchema(_INPUT)] = None
    content: Annotated[Any, WithJsonSchema(_INPUT)] = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Annotated[Whole, Field(ge=1, le=INT32_MAX)] | None = None
    embd_normalize: Annotated[Whole, Field(ge=-1, le=INT32_MAX)] | None = Field(
        default=None, description="-1 not at all, 0 to a largest number of 32760, 1 taxicab, 2 euclidean, else this p-norm"
    )
    normalize: bool | None = Field(default=None, description="false is the same as an `embd_normalize` of -1")
    truncate: bool | None = Field(default=None, description="whether what is too long is cut instead of refused")
    lora: list[LoraScale] | None = None
