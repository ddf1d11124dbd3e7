"""The models that a server has, by name, and which of them a request means. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from puna.config import Settings
from puna.errors import NotFound, StartupError

Job = Literal["text", "infill", "embedding", "rerank", "speech", "tokens"]
"""What a request wants of a model. `tokens` any of them can do."""

_DOES: dict[Job, str] = {
    "text": "generate text",
    "infill": "fill in the middle",
    "embedding": "embed texts",
    "rerank": "rank documents",
    "tokens": "do that",
}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A model that can be loaded."""

    name: str
    settings: Settings
    aliases: tuple[str, ...] = ()
    jobs: frozenset[Job] = frozenset(["text", "infill"])
    """What it can do, `tokens` aside, as far as that can be told before it is loaded."""
    favoured: frozenset[Job] = frozenset()
    """Jobs that it was named for: they are its own even if others could do them."""
    origin: str = ""
    """Where it was named, in words fit for an error message."""
    needed: int = 0
    """Bytes of memory that it is expected to take."""
    on_start: bool = False
    """Whether it is loaded when the server starts."""
    tags: tuple[str, ...] = field(default=())

    def can(self, job: Job) -> bool:
        return job == "tokens" or job in self.jobs


class Catalogue:
    """All entries, found by name, by alias, or by the job."""

    def __init__(self, entries: Iterable[Entry], *, default: str = "") -> None:
        """`default` is the name of the model for requests that name none and could mean several.

        Raises `StartupError` for two models with one name.
        """
        self.entries = tuple(entries)
        self._named: dict[str, Entry] = {}
        self._aliases: dict[str, Entry] = {}
        for entry in self.entries:
            if entry.name in self._named:
                raise StartupError(f"{entry.origin}: there are two models called {entry.name!r}: {self._both(entry)}")
            self._named[entry.name] = entry
        for entry in self.entries:
            for alias in entry.aliases:
                other = self._named.get(alias) or self._aliases.get(alias)
                if other is not None and other is not entry:
                    raise StartupError(f"{entry.origin}: {alias!r} is a name of {other.name!r} already")
                self._aliases[alias] = entry
        self.default = self._named.get(default)

    def _both(self, entry: Entry) -> str:
        return f"{self._named[entry.name].settings.engine.model} and {entry.settings.engine.model}"

    def get(self, name: str) -> Entry | None:
        """The entry of that name or alias."""
        return self._named.get(name) or self._aliases.get(name)

    def choose(self, name: str | None, job: Job) -> Entry:
        """The entry that a request means: by its exact name, by an alias, or the only one that can do the job.

        Raises `NotFound` with the list of those that there are.
        """
        found = self.get(name) if name else None
        if found is not None:
            return found
        able = [entry for entry in self.entries if entry.can(job)]
        own = [entry for entry in able if job in entry.favoured]
        if len(own) == 1:
            return own[0]
        if len(able) == 1:
            return able[0]
        if not name and self.default is not None and self.default.can(job):
            return self.default
        raise NotFound(self._missing(name, job, own or able), param="model")

    def _missing(self, name: str | None, job: Job, able: Sequence[Entry]) -> str:
        if not able:
            return f"no model here can {_DOES[job]}; there are: {_names(self.entries)}"
        said = f"there is no model called {name[:100]!r}" if name else "the request names no model"
        return f"{said}; it could be one of: {_names(able)}"


def _names(entries: Sequence[Entry], most: int = 30) -> str:
    names = ", ".join(entry.name for entry in entries[:most])
    return f"{names} and {len(entries) - most} more" if len(entries) > most else names or "none"
