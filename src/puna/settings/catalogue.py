"""A file of models: for each a name and flags of its own.

TOML:                                   INI, as llama.cpp has it:

    [chat]                                  [*]
    model = "qwen.gguf"                     c = 4096
    alias = ["gpt-4", "default"]            [chat]
    ctx-size = 8192                         model = qwen.gguf
    load-on-startup = true                  LLAMA_ARG_CTX_SIZE = 8192

Paths are relative to the file's folder. What `[*]` says holds for all of them.
"""

from __future__ import annotations

import configparser
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from puna.config import Settings
from puna.errors import StartupError
from puna.settings import file as file_source
from puna.settings.build import OPTIONS, Loaded, variant
from puna.settings.values import Switch

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ALL = "*"
ON_START = "load-on-startup"
IGNORED = frozenset(["version", "stop-timeout"])
"""Keys of llama.cpp's that mean nothing here."""


@dataclass(frozen=True)
class ModelTable:
    """One model of a catalogue."""

    name: str
    aliases: tuple[str, ...]
    settings: Settings
    on_start: bool
    origin: str


def read_catalogue(path: str, loaded: Loaded) -> list[ModelTable]:
    """The models of a file, with the server's own settings below theirs. Raises `StartupError` naming file and line."""
    text = file_source.read_text(path, "--models-preset")
    tables = _ini(path, text) if path.lower().endswith((".ini", ".cfg")) else _toml(path, text)
    common = tables.pop(ALL, {})
    found = [_table(path, text, name, {**common, **table}, loaded) for name, table in tables.items()]
    if not found:
        raise StartupError(f"{path}: there is no model in it; each is a table such as [name] with a line for `model`")
    return found


def _table(path: str, text: str, name: str, table: Mapping[str, object], loaded: Loaded) -> ModelTable:
    content = dict(table)
    aliases = content.pop("alias", ())
    on_start = content.pop(ON_START, False)
    place = f"{path} [{name}]"
    if "model" not in content:
        raise StartupError(f"{place}: there is no `model`, the path of a GGUF file")
    if isinstance(aliases, str):
        aliases = [alias.strip() for alias in aliases.split(",")]
    if not isinstance(aliases, (list, tuple)) or not all(isinstance(alias, str) for alias in aliases):
        raise StartupError(f"{place}: `alias` is a text or a list of texts")
    try:
        on_start = on_start if isinstance(on_start, bool) else Switch().parse(str(on_start))
    except ValueError as error:
        raise StartupError(f"{place}: `{ON_START}`: {error}") from error
    given = file_source.values(content, text, path, OPTIONS, inside=name)
    settings = variant(loaded, given)
    folder = Path(path).expanduser().resolve().parent
    model = str(folder / Path(settings.engine.model).expanduser())
    return ModelTable(
        name=name,
        aliases=tuple(filter(None, aliases)),
        settings=_named(settings, name, model),
        on_start=on_start,
        origin=place,
    )


def _named(settings: Settings, name: str, model: str) -> Settings:
    return replace(settings, engine=replace(settings.engine, model=model), server=replace(settings.server, alias=name))


def _toml(path: str, text: str) -> dict[str, dict[str, object]]:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StartupError(f"{path}: not valid TOML: {error}") from error
    tables: dict[str, dict[str, object]] = {}
    for name, table in content.items():
        if isinstance(table, dict):
            tables[name] = {key.replace("_", "-"): value for key, value in table.items()}
        elif name not in IGNORED:
            raise StartupError(f'{path}: {name!r} stands outside of any model\'s table; what holds for all goes under ["*"]')
    return tables


def _ini(path: str, text: str) -> dict[str, dict[str, object]]:
    reader = configparser.ConfigParser(interpolation=None, default_section="", delimiters=("=",), strict=True)
    reader.optionxform = str  # type: ignore[assignment,method-assign]  # names as they are written, as its documentation has it
    try:
        reader.read_string("[version]\n" + text, path)
    except configparser.Error as error:
        raise StartupError(f"{path}: not a valid INI file: {error.message}") from error
    names = _ini_names()
    tables: dict[str, dict[str, object]] = {}
    for section in reader.sections():
        if section != "version":
            tables[section] = {names.get(key, key): value for key, value in reader[section].items() if key not in IGNORED}
    return tables


def _ini_names() -> dict[str, str]:
    """Short flags and variables of llama.cpp, as they stand in its files, to the options' own names."""
    names: dict[str, str] = {}
    for option in OPTIONS:
        names.update((flag.lstrip("-"), option.name) for flag in option.flags)
        names.update((variable, option.name) for variable in option.variables)
    return names
