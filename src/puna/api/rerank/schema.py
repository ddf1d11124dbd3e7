"""The body of the routes that rank."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, WithJsonSchema

from puna.api.fields import Body, Free, LoraScale
from puna.api.numbers import Count, Whole

_DOCUMENTS = {
    "description": "texts, or objects with a `text`",
    "type": "array",
    "items": {"anyOf": [{"type": "string"}, {"type": "object"}]},
}


class RerankRequest(Body):
    """Rank documents."""

    model: str | None = None
    query: Free = None
    documents: Annotated[Any, WithJsonSchema(_DOCUMENTS)] = None
    texts: Annotated[Any, WithJsonSchema(_DOCUMENTS)] = Field(
        default=None, description="the same as `documents`; the reply then has text-embeddings-inference's shape"
    )
    top_n: Count | None = Field(default=None, description="most documents in the reply")
    top_k: Count | None = Field(default=None, description="the same as `top_n`")
    return_documents: bool | None = None
    return_text: bool | None = Field(default=None, description="the same for `texts`")
    raw_scores: bool | None = Field(default=None, description="the numbers of the model's head in place of 0 to 1")
    truncate: bool | None = Field(default=None, description="whether documents that are too long are cut instead of refused")
    max_tokens_per_doc: Annotated[Whole, Field(ge=1)] | None = Field(default=None, description="tokens to cut each document to")
    rank_fields: list[str] | None = None
    lora: list[LoraScale] | None = None
