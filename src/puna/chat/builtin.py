"""Chat templates by name."""

from __future__ import annotations

from puna.chat_templates import BUILT_IN
from puna.errors import InvalidRequest


def builtin_template(name: str) -> str:
    """The source of the template called `name`. Raises `InvalidRequest` that lists the names there are."""
    source = BUILT_IN.get(name.strip().lower())
    if source is None:
        known = ", ".join(sorted(BUILT_IN))
        raise InvalidRequest(f"there is no built-in chat template called {name[:40]!r}; known: {known}", param="chat_template")
    return source
