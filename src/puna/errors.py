"""Every error puna raises on purpose.

    PunaError
    ├── InvalidRequest          400  the caller must change the request
    │   └── ContextExceeded     400  the prompt does not fit the context
    │       └── InputTooLong    400  one of several inputs does not fit the context
    ├── AuthenticationFailed    401  no key, or a wrong one
    ├── PermissionDenied        403  the caller may not do this
    ├── NotFound                404  no such route, model or object
    ├── TooLarge                413  the body is over the size limit
    ├── QueueFull               429  too much accepted work; come back later
    ├── ServerFault             500  puna or its engine failed; the caller did nothing wrong
    │   └── RequestKilledEngine 500  this very request ended the engine twice
    ├── NotSupported            501  this model or build cannot do that
    ├── Unavailable             503  loading, or shutting down, or the model could not be loaded
    └── StartupError            -    a message for the person at the command line

The HTTP layer maps them by their attributes and nothing else: `status` and `type` are what a client sees.
"""

from __future__ import annotations

from typing import ClassVar


class PunaError(Exception):
    """Base of all errors that puna raises on purpose; `str(error)` is fit to be shown to a user."""

    status: ClassVar[int] = 500
    type: ClassVar[str] = "server_error"

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        """The request field at fault, as a path such as `messages.0.role`."""


class InvalidRequest(PunaError):
    """The request is wrong and will be wrong every time."""

    status = 400
    type = "invalid_request_error"


class ContextExceeded(InvalidRequest):
    """The prompt has more tokens than one sequence may hold."""

    type = "exceed_context_size_error"

    def __init__(self, n_prompt_tokens: int, n_ctx: int) -> None:
        super().__init__(
            f"the request ({n_prompt_tokens} tokens) exceeds the available context size ({n_ctx} tokens); "
            "shorten it or start the server with a larger -c"
        )
        self.n_prompt_tokens = n_prompt_tokens
        self.n_ctx = n_ctx


class InputTooLong(ContextExceeded):
    """One of the inputs to embed or to rank has more tokens than can be looked at together."""

    def __init__(self, index: int, n_tokens: int, n_ctx: int, *, param: str) -> None:
        """`index` counts from 0."""
        super().__init__(n_tokens, n_ctx)
        self.message = f"item {index} of '{param}' has {n_tokens} tokens; the model can take {n_ctx}"
        self.args = (self.message,)
        self.param = f"{param}.{index}"


class AuthenticationFailed(PunaError):
    """No API key was sent, or one that is not known here."""

    status = 401
    type = "authentication_error"


class PermissionDenied(PunaError):
    """The caller is known, or need not be, but may not do this."""

    status = 403
    type = "permission_error"


class NotFound(PunaError):
    """There is no such route, model or stored object."""

    status = 404
    type = "not_found_error"


class TooLarge(PunaError):
    """The request body is over the configured size limit."""

    status = 413
    type = "invalid_request_error"


class QueueFull(PunaError):
    """All slots are busy and the queue behind them is full."""

    status = 429
    type = "rate_limit_error"

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds after which a new try makes sense."""


class ServerFault(PunaError):
    """puna or its engine failed."""


class RequestKilledEngine(ServerFault):
    """The engine died twice on this very request; it is not tried a third time."""


class NotSupported(PunaError):
    """The loaded model, or this build of the engine, cannot do what was asked."""

    status = 501
    type = "not_supported_error"


class Unavailable(PunaError):
    """The model is being loaded, could not be loaded, or the server is shutting down."""

    status = 503
    type = "unavailable_error"

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds after which a new try makes sense."""


class StartupError(PunaError):
    """Something is wrong that only the person at the command line can mend."""
