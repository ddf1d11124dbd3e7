"""Request bodies: raw bytes with a size limit, then JSON that is strict about what JSON is.

What is refused, always with a 400 (413 over the size limit): anything but an object, text that is not UTF-8, lone
surrogates, NaN and infinities, more than `MAX_DEPTH` levels of nesting, `MAX_CONTAINERS` lists and objects, `MAX_VALUES`
values or `MAX_MEMBERS` members of objects. Of a key that occurs twice the last one counts. The content type is not looked
at, so that `curl -d` works as it is.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, NoReturn, TypeVar

import msgspec
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect, Request

from puna.api.disconnect import ClientGone
from puna.api.nesting import shape
from puna.api.strays import note_strays
from puna.errors import InvalidRequest, TooLarge

MAX_DEPTH = 100

MAX_CONTAINERS = 1_000_000
"""Most lists and objects in a body: each costs far more memory than the two bytes it is sent in."""

MAX_VALUES = 2_000_000
"""Most items and members: nobody else is answered while they are read."""

MAX_MEMBERS = 500_000
"""Most members of objects, each of which costs as much time as several items."""

LARGE = 1 << 20
"""Bytes of a body that is read on a thread, so that other requests do not wait for all of it."""

Model = TypeVar("Model", bound=BaseModel)


async def read(request: Request, limit: int) -> bytes:
    """The whole body. Raises `TooLarge` as soon as it is known to be over `limit` bytes."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise TooLarge(f"the request body has {declared} bytes; the limit is {limit}")
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > limit:
                raise TooLarge(f"the request body is over the limit of {limit} bytes")
            parts.append(part)
    except ClientDisconnect as error:
        raise ClientGone from error
    return b"".join(parts)


async def parse_any(raw: bytes, *, as_list: bool = False) -> Any:
    """The JSON object, or list, in a body of any size. Raises `InvalidRequest`."""
    parser = parse_list if as_list else parse
    return parser(raw) if len(raw) < LARGE else await asyncio.to_thread(parser, raw)


def parse(raw: bytes) -> dict[str, Any]:
    """The JSON object in `raw`. Raises `InvalidRequest`."""
    value = _parse(raw, "a JSON object")
    if not isinstance(value, dict):
        raise InvalidRequest("the request body has to be a JSON object")
    return value


def parse_list(raw: bytes) -> list[Any]:
    """The JSON list in `raw`. Raises `InvalidRequest`."""
    value = _parse(raw, "a JSON list")
    if not isinstance(value, list):
        raise InvalidRequest("the request body has to be a JSON list")
    return value


def _parse(raw: bytes, expected: str) -> Any:
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if not raw.strip():
        raise InvalidRequest(f"the request body is empty; {expected} is expected")
    check_shape(raw)
    try:
        value = msgspec.json.decode(raw)
    except msgspec.ValidationError:
        # A number beyond what a float can hold: as an infinity it gets far enough for the field to be named.
        value = _parse_slowly(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise InvalidRequest(f"the request body is not valid JSON: {_reason(raw, error)}") from error
    return value


def check_shape(raw: bytes) -> None:
    """Raise `InvalidRequest` for what would take a parser too deep or too long."""
    few_values = raw.count(b",") < MAX_VALUES and raw.count(b":") < MAX_MEMBERS
    if few_values and raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return
    found = shape(raw)
    if found.depth > MAX_DEPTH:
        raise InvalidRequest(f"the request body is nested more than {MAX_DEPTH} levels deep")
    for n, most, what in (
        (found.containers, MAX_CONTAINERS, "lists and objects"),
        (found.values, MAX_VALUES, "values"),
        (found.members, MAX_MEMBERS, "members of objects"),
    ):
        if n > most:
            raise InvalidRequest(f"the request body has more than {most} {what}")


def _parse_slowly(raw: bytes) -> Any:
    try:
        return json.loads(raw, parse_constant=_refuse_constant)
    except ValueError as error:
        raise InvalidRequest("the request body is not valid JSON: a number is out of range") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _reason(raw: bytes, error: Exception) -> str:
    if "\\u" in str(error) or "surrogate" in str(error) or b"\\ud" in raw.lower():
        return f"{error} (perhaps a lone surrogate)"
    return str(error)


def validate(model: type[Model], value: Any) -> Model:
    """The value as a model. Raises `InvalidRequest` that names the first field at fault."""
    try:
        found = model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = field_path(first["loc"], value, missing=first["type"] == "missing")
        message = first["msg"].removeprefix("Value error, ")
        raise InvalidRequest(f"Field '{where}': {message}" if where else message, param=where or None) from error
    if isinstance(value, dict):
        note_strays(model, value)
    return found


def field_path(location: tuple[int | str, ...], value: Any, *, missing: bool) -> str:
    """Where in the body a validation error lies, without the names that only the schema knows."""
    path: list[str] = []
    for part in location:
        in_list = isinstance(value, list) and isinstance(part, int) and part < len(value)
        if in_list or (isinstance(value, dict) and part in value):
            value = value[part]
            path.append(str(part))
    if missing:
        path.append(str(location[-1]))
    return ".".join(path)
