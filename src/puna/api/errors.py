"""Errors as llama.cpp's and OpenAI's clients read them."""

from __future__ import annotations

from typing import Any

import msgspec

from puna.errors import ContextExceeded, PunaError, QueueFull, ServerFault, Unavailable
from puna.log import logger


def known(error: Exception) -> PunaError:
    """The same error, or for one that nobody foresaw a general one, with the traceback in the log only."""
    if isinstance(error, PunaError):
        return error
    logger.error("unexpected error in a request", exc_info=error)
    return ServerFault("internal error; the server's log has the details")


def error_object(error: PunaError) -> dict[str, Any]:
    """The value of `error` in a reply."""
    value: dict[str, Any] = {"code": error.status, "message": error.message, "type": error.type, "param": error.param}
    if isinstance(error, ContextExceeded):
        value["n_prompt_tokens"] = error.n_prompt_tokens
        value["n_ctx"] = error.n_ctx
    return value


def error_body(error: PunaError) -> bytes:
    """A whole reply."""
    return msgspec.json.encode({"error": error_object(error)})


def error_headers(error: PunaError) -> dict[str, str]:
    """Headers that go with the reply."""
    if isinstance(error, (QueueFull, Unavailable)):
        return {"retry-after": str(error.retry_after)}
    if error.status == 401:
        return {"www-authenticate": "Bearer"}
    return {}


def error_frame(error: PunaError) -> bytes:
    """The last frame of an event stream that fails."""
    return b"data: " + error_body(error) + b"\n\n"
