"""What an option is: its names everywhere, its kind, and the setting it changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from puna.settings.values import Kind, Switch, Value


@dataclass(frozen=True, kw_only=True)
class Option:
    """One thing that can be set. The long flag's name is its name in a file, and `PUNA_<NAME>` its variable."""

    flags: tuple[str, ...]
    """Spellings on the command line, the long name that gives the option its own name first."""
    kind: Kind
    target: str
    """`engine.<field>`, `server.<field>`, `sampling.<native field>`, or `load.<name>` for what is read on the way."""
    help: str
    group: str
    off_flags: tuple[str, ...] = ()
    """Flags that mean off; switches only."""
    variables: tuple[str, ...] = ()
    """Further names of the environment variable: llama.cpp's, for a switch the form with `NO_` too, and llama-crab's with
    `PUNA_` for its own prefix."""
    bare: str | None = None
    """The value that is meant when the flag stands without one, for kinds whose value may be left out."""
    also: Mapping[Value, Mapping[str, Value]] = field(default_factory=dict)
    """Further settings (target to value) that a value brings with it."""

    @property
    def name(self) -> str:
        return self.flags[0].lstrip("-")

    @property
    def own_variable(self) -> str:
        return "PUNA_" + self.name.upper().replace("-", "_")

    @property
    def takes_value(self) -> bool:
        return not isinstance(self.kind, Switch)


@dataclass(frozen=True)
class Given:
    """One value as it was found, and where, in words fit for an error message."""

    option: Option
    text: str
    origin: str
