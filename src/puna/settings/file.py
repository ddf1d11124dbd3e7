"""The TOML file: options under the names of their long flags."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from puna.errors import StartupError
from puna.settings.flags import Arguments, nearest
from puna.settings.option import Given, Option

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_text(path: str, origin: str) -> str:
    """A text file that a setting names. Raises `StartupError` with the setting, the path and the reason."""
    try:
        return Path(path).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        raise StartupError(f"{origin}: cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise StartupError(f"{origin}: {path} is not UTF-8 text (byte {error.start})") from error


def read(path: str, origin: str, options: Iterable[Option]) -> Arguments:
    """The values a TOML file gives. Raises `StartupError` naming the file and line of what is wrong."""
    text = read_text(path, origin)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StartupError(f"{path}: not valid TOML: {error}") from error
    known = {option.name: option for option in options if option.target != "load.config"}
    given: list[Given] = []
    for key, value in content.items():
        place = f"{path} line {_line(text, key)} ({key})"
        option = known.get(key.replace("_", "-"))
        if option is None:
            raise StartupError(f"{place}: there is no such option{nearest(key.replace('_', '-'), known)}")
        given.append(Given(option, _as_text(value, place), place))
    return Arguments(tuple(given), ())


def _as_text(value: object, place: str) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (int, float, str)):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    raise StartupError(f"{place}: expected a number, a text, true or false, or a list of texts")


def _line(text: str, key: str) -> int:
    """The line that gives this key its value; the parser itself does not tell."""
    form = re.compile(rf"""\s*(["']?){re.escape(key)}\1\s*=|\s*\[\s*{re.escape(key)}\s*\]""")
    return next((number for number, line in enumerate(text.splitlines(), 1) if form.match(line)), 1)
