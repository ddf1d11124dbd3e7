"""Python literals that come in pieces."""

from __future__ import annotations

import pytest

from puna.chat.formats.bodies.python_value import PythonText, python_as_json


@pytest.mark.parametrize("text", ["['a', 1]", "{'a': [True, None]}", "(1, 2)", "[1", "['a", "[x y]", "[1] 2", "{'a': '}'} "])
def test_what_is_whole_is_known_at_every_split(text: str) -> None:
    for at in range(len(text) + 1):
        found = PythonText()
        for piece in (text[:at], text[at:]):
            found.feed(piece)
        assert found.whole is (python_as_json(text) is not None)
