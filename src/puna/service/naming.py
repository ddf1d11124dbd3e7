"""Errors that name the field they come from, which only the caller knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from puna.errors import InvalidRequest


@contextmanager
def naming(field: str | None) -> Iterator[None]:
    """Let complaints about a constraint name the field that it came from."""
    try:
        yield
    except InvalidRequest as error:
        if field is None or type(error) is not InvalidRequest:
            raise
        raise InvalidRequest(f"Field '{field}': {error.message}", param=field) from error
