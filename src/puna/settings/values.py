"""Text to value, one small class a kind of option. Pure: what is wrong with the text is a `ValueError` in words."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

TRUE = frozenset({"1", "true", "on", "yes", "enabled"})
FALSE = frozenset({"0", "false", "off", "no", "disabled"})
UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

FLOAT32_MAX = 3.4e38

File = tuple[str, float]
"""A path and a scale."""

Value = bool | int | float | str | tuple[str, ...] | tuple[File, ...] | tuple[int, int]


class Kind(Protocol):
    """How an option's text is understood."""

    @property
    def metavar(self) -> str:
        """What stands for the value in the help; empty for an option without one."""

    def parse(self, text: str) -> Value:
        """The value, or a `ValueError` that says what is wrong with the text."""


@dataclass(frozen=True)
class Switch:
    """On or off; as a flag it takes no value."""

    metavar: str = ""

    def parse(self, text: str) -> bool:
        word = text.strip().lower()
        if word in TRUE:
            return True
        if word in FALSE:
            return False
        raise ValueError(f"{text!r} is neither on nor off")


@dataclass(frozen=True)
class Integer:
    """A whole number within bounds; some words may stand for one."""

    low: int
    high: int = 2**31 - 1
    metavar: str = "N"
    words: Mapping[str, int] = field(default_factory=dict)
    unit: int = 1
    """What the number is multiplied with when it is positive."""

    def parse(self, text: str) -> int:
        word = text.strip().lower()
        if word in self.words:
            return self.words[word]
        if not re.fullmatch(r"[+-]?\d{1,19}", word):
            raise ValueError(f"{text!r} is not a whole number" + "".join(f" or {name!r}" for name in self.words))
        number = int(word)
        if not self.low <= number <= self.high:
            raise ValueError(f"{number} is not between {self.low} and {self.high}")
        return number * self.unit if number > 0 else number


@dataclass(frozen=True)
class Number:
    """A finite number within bounds."""

    low: float = -math.inf
    high: float = math.inf
    metavar: str = "X"

    def parse(self, text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise ValueError(f"{text!r} is not a number") from None
        if not math.isfinite(number):
            raise ValueError(f"{text!r} is not a finite number")
        if number < self.low:
            raise ValueError(f"{number:g} is less than {self.low:g}")
        if number > self.high:
            raise ValueError(f"{number:g} is more than {self.high:g}")
        return number


@dataclass(frozen=True)
class Inverse(Number):
    """A number that is set as one divided by it."""

    def parse(self, text: str) -> float:
        return 1.0 / super().parse(text)


@dataclass(frozen=True)
class Choice:
    """One of some words, each of which stands for a value."""

    words: Mapping[str, str]
    metavar: str = "WORD"

    def parse(self, text: str) -> str:
        word = text.strip().lower()
        if word not in self.words:
            raise ValueError(f"{text!r} is not one of {', '.join(self.words)}")
        return self.words[word]


def choice(*words: str, **aliases: str) -> Choice:
    """A choice between words that mean themselves, and aliases of them."""
    return Choice({**{word: word for word in words}, **aliases}, "{" + ",".join(words) + "}")


@dataclass(frozen=True)
class Text:
    """Any text that is not empty."""

    metavar: str = "TEXT"

    def parse(self, text: str) -> str:
        if not text.strip():
            raise ValueError("the value is empty")
        return text


@dataclass(frozen=True)
class JsonObject:
    """JSON text of an object, kept as text."""

    metavar: str = "JSON"

    def parse(self, text: str) -> str:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"no JSON: {error}") from error
        if not isinstance(value, dict):
            raise ValueError('a JSON object is expected, such as {"enable_thinking": false}')
        return text


@dataclass(frozen=True)
class Words:
    """Texts between commas. Given several times as a flag, the lists are joined."""

    metavar: str = "A,B"

    def parse(self, text: str) -> tuple[str, ...]:
        words = tuple(word.strip() for word in text.split(",") if word.strip())
        if not words:
            raise ValueError("the value is empty")
        return words


@dataclass(frozen=True)
class Files:
    """Paths between commas, with a scale of 1; one that holds a comma stands in double quotes. Several times add up."""

    metavar: str = "FILE"

    def parse(self, text: str) -> tuple[File, ...]:
        return tuple((path, 1.0) for path in _split(text))


@dataclass(frozen=True)
class ScaledFiles:
    """The same, each with a colon and its scale. As a flag, a last scale may be a word of its own."""

    metavar: str = "FILE:SCALE"

    def is_half(self, text: str) -> bool:
        """Whether a scale is missing at the end."""
        return _scale(text.rpartition(":")[2]) is None or ":" not in text

    def parse(self, text: str) -> tuple[File, ...]:
        return tuple(map(self._one, _split(text)))

    def _one(self, text: str) -> File:
        path, _, word = text.rpartition(":")
        scale = _scale(word)
        if not path or scale is None:
            raise ValueError(f"{text!r} is not a file, a colon and a number")
        return path, scale


@dataclass(frozen=True)
class Range:
    """Two whole numbers, such as 1:10. As a flag they may be two words."""

    metavar: str = "START:END"

    def is_half(self, text: str) -> bool:
        """Whether the second number is missing."""
        return re.fullmatch(r"[+-]?\d+", text.strip()) is not None

    def parse(self, text: str) -> tuple[int, int]:
        found = re.fullmatch(r"\s*([+-]?\d{1,9})\s*[:,\s]\s*([+-]?\d{1,9})\s*", text)
        if not found:
            raise ValueError(f"{text!r} is not a range such as 1:10")
        return int(found.group(1)), int(found.group(2))


LISTS = (Words, Files, ScaledFiles)
"""Kinds whose values add up when they are given several times."""

PAIRS = (ScaledFiles, Range)
"""Kinds whose value may be two words on the command line; a colon joins them."""


def _split(text: str) -> list[str]:
    parts = [part.strip() for part in next(csv.reader([text], skipinitialspace=True), []) if part.strip()]
    if not parts:
        raise ValueError("the value is empty")
    return parts


def _scale(text: str) -> float | None:
    try:
        scale = float(text)
    except ValueError:
        return None
    return scale if abs(scale) <= FLOAT32_MAX else None


@dataclass(frozen=True)
class Size:
    """A number of bytes, such as 65536, 512K, 64M or 1G."""

    metavar: str = "BYTES"

    def parse(self, text: str) -> int:
        found = re.fullmatch(r"(\d{1,15})\s*([bkmg]?)(?:i?b)?", text.strip().lower())
        if not found:
            raise ValueError(f"{text!r} is not a size such as 65536, 512K, 64M or 1G")
        size = int(found.group(1)) * UNITS[found.group(2)]
        if size == 0:
            raise ValueError("a size of 0 would refuse everything")
        return size
