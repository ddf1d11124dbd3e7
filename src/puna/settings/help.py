"""The options as text for people."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from puna.settings.build import DEFAULTS, OPTIONS
from puna.settings.option import Option
from puna.settings.values import Integer, Inverse, Size
from puna.types import Sampling

COLUMN = 34


def option_help(width: int = 100) -> str:
    """All options in their groups, with defaults and variables, wrapped to `width` columns."""
    sampling: Mapping[str, object] = {f"sampling.{name}": getattr(Sampling(), name) for name in Sampling.__struct_fields__}
    defaults = {**DEFAULTS, **sampling, "sampling.seed": -1}
    lines: list[str] = []
    group = ""
    places = {name: place for place, name in enumerate(dict.fromkeys(option.group for option in OPTIONS))}
    for option in sorted(OPTIONS, key=lambda option: places[option.group]):
        if option.group != group:
            group = option.group
            lines += ["", f"{group}:"]
        lines += _entry(option, defaults.get(option.target), width)
    return "\n".join(lines).lstrip("\n")


def _entry(option: Option, default: object, width: int) -> list[str]:
    short = [flag for flag in option.flags if not flag.startswith("--")]
    long = [flag for flag in option.flags if flag.startswith("--")]
    head = "  " + ", ".join([*short, *long[:1], *option.off_flags[:1]])
    metavar = option.kind.metavar
    if metavar:
        head += f" [{metavar}]" if option.bare is not None else f" {metavar}"
    text = option.help + _default(option, default)
    body = textwrap.wrap(text, max(20, width - COLUMN))
    if len(head) < COLUMN - 1:
        return [head.ljust(COLUMN) + body[0], *(" " * COLUMN + line for line in body[1:])]
    return [head, *(" " * COLUMN + line for line in body)]


def _default(option: Option, value: object) -> str:
    if isinstance(option.kind, Inverse) or value is None or value in ("", (), (0, 0)):
        return ""
    if isinstance(value, bool):
        return f" (default: {'on' if value else 'off'})"
    if isinstance(option.kind, Size) and isinstance(value, int):
        return f" (default: {value >> 20}M)"
    if isinstance(option.kind, Integer) and isinstance(value, int) and value > 0:
        value //= option.kind.unit
    return f" (default: {value:g})" if isinstance(value, float) else f" (default: {value})"
