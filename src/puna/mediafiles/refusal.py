"""Why a picture or a sound cannot be had."""

from __future__ import annotations

from puna.errors import InvalidRequest, NotSupported, PunaError


class Refusal(Exception):
    """Raised where nobody knows which field is at fault; `reason` goes on after the field's name."""

    def __init__(self, reason: str, *, unsupported: bool = False) -> None:
        """`unsupported`: the request is fine, and could be answered elsewhere."""
        super().__init__(reason)
        self.reason = reason
        self.unsupported = unsupported

    def named(self, field: str) -> PunaError:
        """The same as an error about a field of the request."""
        kind = NotSupported if self.unsupported else InvalidRequest
        return kind(f"Field '{field}': {self.reason}", param=field)
