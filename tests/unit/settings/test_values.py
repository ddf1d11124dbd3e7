from __future__ import annotations

import re

import pytest

from puna.settings.values import Integer, Inverse, Kind, Number, Size, Switch, Text, Value, Words, choice


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Switch(), "ON", True),
        (Switch(), "1", True),
        (Switch(), "disabled", False),
        (Integer(0, 10), "10", 10),
        (Integer(-1, 10), "-1", -1),
        (Integer(-1, words={"auto": 0}), "AUTO", 0),
        (Integer(-1, unit=1 << 20), "2", 2 << 20),
        (Integer(-1, unit=1 << 20), "-1", -1),
        (Integer(-1, unit=1 << 20), "0", 0),
        (Number(0, 1), "0.25", 0.25),
        (Number(), "1e3", 1000.0),
        (Inverse(0.1), "4", 0.25),
        (choice("a", "b", c="a"), "C", "a"),
        (Text(), " kept ", " kept "),
        (Words(), " a, b ,,c", ("a", "b", "c")),
        (Size(), "65536", 65536),
        (Size(), "512K", 512 << 10),
        (Size(), "64MiB", 64 << 20),
        (Size(), "1 g", 1 << 30),
    ],
)
def test_good_text(kind: Kind, text: str, value: Value) -> None:
    parsed = kind.parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (Switch(), "maybe", "neither on nor off"),
        (Switch(), "", "neither on nor off"),
        (Integer(0, 10), "11", "11 is not between 0 and 10"),
        (Integer(0, 10), "-1", "not between"),
        (Integer(0), "1.5", "not a whole number"),
        (Integer(0), "", "not a whole number"),
        (Integer(0), "1_000", "not a whole number"),
        (Integer(0), "9" * 30, "not a whole number"),
        (Integer(0, words={"auto": 0}), "some", "or 'auto'"),
        (Number(), "nan", "not a finite number"),
        (Number(), "inf", "not a finite number"),
        (Number(), "x", "not a number"),
        (Number(0, 1), "-0.1", "-0.1 is less than 0"),
        (Number(0, 1), "1.1", "1.1 is more than 1"),
        (Inverse(0.1), "0", "less than"),
        (choice("a", "b"), "c", "not one of a, b"),
        (Text(), "  ", "empty"),
        (Words(), ",, ", "empty"),
        (Size(), "big", "not a size"),
        (Size(), "-1", "not a size"),
        (Size(), "0", "refuse everything"),
    ],
)
def test_bad_text_says_what_is_wrong(kind: Kind, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        kind.parse(text)
