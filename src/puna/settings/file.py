"""The TOML file: options under the names of their long flags."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
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
    return Arguments(tuple(values(content, text, path, options)), ())


def values(content: Mapping[str, object], text: str, path: str, options: Iterable[Option], *, inside: str = "") -> list[Given]:
    """The values of one table, which stands in the file's text after a line that has `inside`.

    Raises `StartupError` naming the file and line of what is wrong.
    """
    known = {option.name: option for option in options if option.target != "load.config"}
    given: list[Given] = []
    for key, value in content.items():
        place = f"{path} line {_line(text, key, inside)} ({key})"
        option = known.get(key.replace("_", "-"))
        if option is None:
            raise StartupError(f"{place}: there is no such option{nearest(key.replace('_', '-'), known)}")
        given.append(Given(option, _as_text(value, place), place))
    return given


def _as_text(value: object, place: str) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (int, float, str)):
        return str(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    raise StartupError(f"{place}: expected a number, a text, true or false, or a list of texts")


def _line(text: str, key: str, inside: str = "") -> int:
    """The line that gives this key its value; the parser itself does not tell."""
    form = re.compile(rf"""\s*(["']?){re.escape(key)}\1\s*=|\s*\[\s*{re.escape(key)}\s*\]""")
    lines = text.splitlines()
    begin = next((number for number, line in enumerate(lines) if inside and line.strip().startswith("[") and inside in line), 0)
    return next((number for number, line in enumerate(lines[begin:], begin + 1) if form.match(line)), begin + 1)
