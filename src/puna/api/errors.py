"""Errors as clients read them: in one shape for llama.cpp's and OpenAI's, in another one for Anthropic's."""

from __future__ import annotations

import secrets
from typing import Any

import msgspec

from puna.errors import ContextExceeded, PunaError, QueueFull, ServerFault, Unavailable
from puna.log import logger

MESSAGES = "/v1/messages"
"""Where errors have Anthropic's shape, and below it."""

RANKING = ("/rerank", "/reranking")
"""How paths end whose clients, Cohere's among them, look for a message beside the error."""

_MESSAGES_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


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


def error_body(error: PunaError, path: str = "") -> bytes:
    """A whole reply, in the shape of the dialect that `path` belongs to."""
    if is_messages(path):
        return msgspec.json.encode(messages_error(error))
    value = error_object(error)
    if isinstance(error, ContextExceeded) and path.removeprefix("/v1").startswith("/responses"):
        value["code"] = "context_length_exceeded"  # a client of that route tells its user by this word
    more = {"message": error.message} if path.endswith(RANKING) else {}
    return msgspec.json.encode({"error": value, **more})


def is_messages(path: str) -> bool:
    """Whether Anthropic's clients wait for the reply."""
    return path == MESSAGES or path.startswith(MESSAGES + "/")


def messages_error(error: PunaError) -> dict[str, Any]:
    """An error as Anthropic's clients read it; some take the numbers out of the message on long prompts."""
    message = error.message
    if isinstance(error, ContextExceeded):
        message = f"prompt is too long: {error.n_prompt_tokens} tokens > {error.n_ctx} maximum"
    kind = _MESSAGES_TYPES.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    return {
        "type": "error",
        "error": {"type": kind, "message": message, "param": error.param},
        "request_id": "req_" + secrets.token_urlsafe(18),
    }


def error_headers(error: PunaError) -> dict[str, str]:
    """Headers that go with the reply."""
    if isinstance(error, (QueueFull, Unavailable)):
        return {"retry-after": str(error.retry_after)}
    if error.status == 401:
        return {"www-authenticate": "Bearer"}
    if error.status == 501:
        return {"x-should-retry": "false"}  # OpenAI's and Anthropic's SDKs would wait and ask again
    return {}


def error_frame(error: PunaError, path: str = "") -> bytes:
    """The last frame of an event stream that fails."""
    return (b"event: error\n" if is_messages(path) else b"") + b"data: " + error_body(error, path) + b"\n\n"
