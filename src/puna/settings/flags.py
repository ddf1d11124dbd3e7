"""The command line: arguments to values that remember their flag."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from puna.errors import StartupError
from puna.settings.foreign import FOREIGN, Foreign
from puna.settings.option import Given, Option
from puna.settings.values import PAIRS


@dataclass(frozen=True)
class Arguments:
    """What a command line said."""

    given: tuple[Given, ...]
    notes: tuple[str, ...]
    """What the user should know about flags that change nothing."""


def read(arguments: Sequence[str], options: Iterable[Option]) -> Arguments:
    """Read flags in the forms `--flag value` and `--flag=value`. Raises `StartupError` at the first wrong one."""
    known = _spellings(options)
    given: list[Given] = []
    notes: list[str] = []
    rest = list(reversed(arguments))
    while rest:
        flag, attached = _split(rest.pop())
        if flag in known:
            option, word = known[flag]
            if word and attached is not None:
                raise StartupError(f"{flag} takes no value")
            given.append(Given(option, word or _value(flag, option, attached, rest), flag))
        elif flag in FOREIGN:
            entry = FOREIGN[flag]
            note = foreign_note(flag, entry)
            for _ in range(entry.values if attached is None else 0):
                _take(flag, rest)
            notes.extend([note] if note else [])
        else:
            raise StartupError(_unknown(flag, known))
    return Arguments(tuple(given), tuple(notes))


def foreign_note(name: str, entry: Foreign) -> str:
    """What to say of a flag or variable that has no effect. Raises `StartupError` for one that must not be passed over."""
    if entry.fatal:
        raise StartupError(f"{name} is known from llama.cpp's server but not supported here: {entry.advice}")
    return f"{name} has no effect: {entry.advice}" if entry.advice else ""


def nearest(name: str, names: Iterable[str]) -> str:
    """The end of a message about an unknown name: the closest known one, if any is close."""
    known = list(names)
    if longer := [other for other in known if other.startswith(name + "-")]:  # the shortest of those that go on
        return f"; did you mean {min(longer, key=len)}?"
    close = difflib.get_close_matches(name, known, n=5, cutoff=0.6)
    if not close:
        return ""
    swapped = [other for other in close if sorted(other) == sorted(name)]  # letters in another order
    return f"; did you mean {(swapped or close)[0]}?"


def _spellings(options: Iterable[Option]) -> dict[str, tuple[Option, str]]:
    """Flag to option, and the value that the flag itself implies (empty if a value follows)."""
    known: dict[str, tuple[Option, str]] = {}
    for option in options:
        on = "" if option.takes_value else "on"
        known.update((flag, (option, on)) for flag in option.flags)
        known.update((flag, (option, "off")) for flag in option.off_flags)
    return known


def _split(argument: str) -> tuple[str, str | None]:
    """The flag, with dashes for underscores as llama.cpp takes it, and a value attached with `=`."""
    name, sign, value = argument.partition("=")
    if name.startswith("--"):
        name = name.replace("_", "-")
    return name, value if sign else None


def _value(flag: str, option: Option, attached: str | None, rest: list[str]) -> str:
    if attached is not None:
        text = attached
    elif option.bare is not None and not (rest and _is_value(option, rest[-1])):
        return option.bare
    else:
        text = _take(flag, rest, option.kind.metavar)
    if isinstance(option.kind, PAIRS) and option.kind.is_half(text):
        text = f"{text}:{_take(flag, rest, option.kind.metavar)}"
    return text


def _is_value(option: Option, text: str) -> bool:
    try:
        option.kind.parse(text)
    except ValueError:
        return False
    return True


def _take(flag: str, rest: list[str], metavar: str = "value") -> str:
    if not rest:
        raise StartupError(f"{flag} needs a value: {flag} {metavar}")
    return rest.pop()


def _unknown(flag: str, known: dict[str, tuple[Option, str]]) -> str:
    if not flag.startswith("-"):
        return f"{flag!r} is not a flag; a model file goes after -m, and `puna serve --help` lists the flags"
    return f"unknown flag {flag}{nearest(flag, [*known, *FOREIGN])} (`puna serve --help` lists them all)"
