"""One line format, and no key in any line."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import pytest

from puna.log import configure, logger


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    kept = (logger.handlers[:], logger.level, logger.propagate)
    yield
    logger.handlers[:], logger.level, logger.propagate = kept


def lines(stream: io.StringIO) -> list[str]:
    return stream.getvalue().splitlines()


def test_format_and_level() -> None:
    stream = io.StringIO()
    configure("info", stream=stream)
    logger.debug("no")
    logger.info("%d slots", 4)
    logger.warning("careful")
    assert [re.sub(r"^\d\d:\d\d:\d\d", "T", line) for line in lines(stream)] == ["T info 4 slots", "T warning careful"]


def test_the_second_call_replaces_the_first() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure("debug", stream=first)
    configure("error", stream=second)
    logger.warning("no")
    logger.error("yes")
    assert lines(first) == []
    assert len(lines(second)) == 1


@pytest.mark.parametrize("colour", [True, False])
def test_colour_only_when_asked_for(colour: bool) -> None:
    stream = io.StringIO()
    configure(colour=colour, stream=stream)
    logger.error("text")
    assert ("\x1b[31merror\x1b[0m text" in stream.getvalue()) is colour
    assert ("\x1b" in stream.getvalue()) is colour


def test_keys_are_masked_wherever_they_are() -> None:
    stream = io.StringIO()
    configure(secrets=("sk-12", "sk-1234", ""), stream=stream)
    logger.info("key sk-1234 and %s", "sk-12")
    try:
        raise ValueError("sk-1234")
    except ValueError:
        logger.exception("failed")
    assert "sk-" not in stream.getvalue()
    assert "34" not in stream.getvalue().split("\n")[0][8:]
    assert "ValueError: ***" in stream.getvalue()
