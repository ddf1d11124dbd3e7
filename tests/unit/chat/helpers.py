"""Real templates kept beside the repository, and short ways to write conversations."""

from __future__ import annotations

import os
from datetime import datetime
from functools import cache
from pathlib import Path

import pytest

from puna.chat import ChatTemplate, Message

FOLDER = Path(os.environ.get("PUNA_SHARED", Path(__file__).parents[4] / "shared")) / "data" / "chat-templates"
NAMES = sorted(path.stem for path in FOLDER.glob("*.jinja"))

each_template = pytest.mark.parametrize("name", NAMES or [pytest.param("", marks=pytest.mark.skip(f"no templates in {FOLDER}"))])
"""Runs a test once for every real template."""


NOW = datetime(2026, 3, 4, 5, 6, 7)
"""What time it is for real templates."""


@cache
def real(name: str) -> ChatTemplate:
    """One real template; the test is skipped where there is none."""
    path = FOLDER / f"{name}.jinja"
    if not path.is_file():
        pytest.skip(f"no template at {path}")
    return ChatTemplate(path.read_text(encoding="utf-8"), bos_token="<s>", eos_token="</s>", now=lambda: NOW)


@cache
def made(source: str) -> ChatTemplate:
    """A template of the test's own."""
    return ChatTemplate(source, bos_token="<s>", eos_token="</s>")


def system(text: str) -> Message:
    return Message(role="system", content=text)


def developer(text: str) -> Message:
    return Message(role="developer", content=text)


def user(text: str) -> Message:
    return Message(role="user", content=text)


def assistant(text: str) -> Message:
    return Message(role="assistant", content=text)
