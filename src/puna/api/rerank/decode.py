"""Requests to rank made into neutral values."""

from __future__ import annotations

from typing import Any

import msgspec

from puna.api.rerank.schema import RerankRequest
from puna.errors import InvalidRequest, NotSupported


class Wish(msgspec.Struct, frozen=True):
    """What is to be ranked, and what is wanted of it."""

    query: str
    documents: list[str]
    param: str
    """The field that they came in."""
    given: list[Any]
    """The documents as they were sent."""
    most: int
    """Documents in the reply."""
    bare: bool
    """Whether the reply is only a list, as text-embeddings-inference has it."""
    with_documents: bool
    raw: bool
    truncate: bool
    most_tokens: int | None


def decode(body: RerankRequest) -> Wish:
    """Raises `InvalidRequest` or `NotSupported` that names the field."""
    if body.texts is not None and body.documents is not None:
        raise InvalidRequest("Field 'texts': send either 'texts' or 'documents'", param="texts")
    param = "texts" if body.texts is not None else "documents"
    given = body.texts if body.texts is not None else body.documents
    documents = _documents(given, param, body.rank_fields)
    most = body.top_n if body.top_n is not None else body.top_k
    bare = param == "texts"
    return Wish(
        query=_query(body.query),
        documents=documents,
        param=param,
        given=given,
        most=len(documents) if most is None else min(most, len(documents)),
        bare=bare,
        with_documents=body.return_documents is True or (bare and body.return_text is True),
        raw=body.raw_scores is True,
        truncate=body.truncate is True,
        most_tokens=body.max_tokens_per_doc,
    )


def _query(value: Any) -> str:
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        value = value["text"]
    if value is None:
        raise InvalidRequest("Field 'query': Field required", param="query")
    if not isinstance(value, str):
        raise InvalidRequest("Field 'query': a text is expected", param="query")
    if not value:
        raise InvalidRequest("Field 'query': the query is empty", param="query")
    return value


def _documents(value: Any, param: str, fields: list[str] | None) -> list[str]:
    if value is None:
        raise InvalidRequest(f"Field '{param}': Field required", param=param)
    if not isinstance(value, list) or not value:
        raise InvalidRequest(f"Field '{param}': a list of at least one text is expected", param=param)
    if fields and fields != ["text"]:
        raise NotSupported("Field 'rank_fields': documents are ranked by their 'text' only", param="rank_fields")
    return [_document(item, f"{param}.{index}") for index, item in enumerate(value)]


def _document(item: Any, param: str) -> str:
    text = item.get("text") if isinstance(item, dict) else item
    if not isinstance(text, str):
        raise InvalidRequest(f"Field '{param}': a text, or an object with a 'text', is expected", param=param)
    return text
