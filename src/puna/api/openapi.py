"""Request bodies in the OpenAPI document. Routes read their bodies themselves, so FastAPI does not see the models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

REFERENCE = "#/components/schemas/{model}"

ERROR_SCHEMA: dict[str, Any] = {
    "title": "Error",
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "integer"},
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
            "required": ["code", "message", "type", "param"],
        }
    },
    "required": ["error"],
}


def request_body(model: type[BaseModel], *, required: bool = True) -> dict[str, Any]:
    """`openapi_extra` of a route that takes this model as JSON."""
    reference = {"$ref": REFERENCE.format(model=model.__name__)}
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": reference}}}}


def components(models: Iterable[type[BaseModel]]) -> dict[str, Any]:
    """Schemas of these models, of whatever they refer to, and of errors, by name."""
    _, document = models_json_schema([(model, "validation") for model in models], ref_template=REFERENCE)
    return {**document.get("$defs", {}), "Error": ERROR_SCHEMA}
