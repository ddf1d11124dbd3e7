"""ECMAScript's expressions in the engine's syntax."""

from __future__ import annotations

import json

import pytest

from puna.grammar import engine_form
from puna.grammar.charset import ANY, CharSet, escape
from puna.grammar.schema.formats import STRINGS
from puna.grammar.schema.patterns import PatternError, none_of, translate
from tests.unit.grammar.reference import engine_accepts


def allows(pattern: str, text: str) -> bool:
    return engine_accepts(engine_form.of_schema({"type": "string", "pattern": pattern}), json.dumps(text, ensure_ascii=False))


PATTERNS = [
    (r"^\d{2,3}$", ["12", "123"], ["1", "1234", "a12"]),
    (r"^[a-z]+\.(?:org|net)$", ["x.org"], ["xorg", "x.com"]),
    (r"b", ["abc", "b"], ["a", ""]),
    (r"^\S$", ["x", "é"], [" ", ""]),
    (r"^[\w.-]+$", ["a-b.c_d"], ["a b"]),
    (r"^[\d-x]+$", ["1-x"], ["a"]),
    (r"^[[]$", ["["], ["]", ""]),
    (r"^[&&~~-]$", ["&", "~", "-"], ["a"]),
    (r"^[^]$", ["a", "é"], [""]),
    (r"^\u00e9\x41\cA?$", ["éA"], ["A"]),
    (r"^\ud83d\ude00$", ["😀"], ["a"]),
    (r"^a\/b\_\-$", ["a/b_-"], ["a"]),
    (r"^{a}$", ["{a}"], ["a"]),
    (r"^x{2}}$", ["xx}"], ["xx"]),
    (r"^(?<year>\d{4})$", ["2024"], ["20"]),
    (r"^$|^a$", ["", "a"], ["b"]),
    (r'^[^"]$', ["a", "\n", "\\"], ['"']),
    (r'^[^"\\]*$', ["a\n", ""], ['"', "\\", 'a"b']),
    (r"^q[^\\].*$", ["qa\\", 'q"'], ["q\\"]),
    (r"^(?:a|b)*?$", ["", "ab"], ["c"]),
]


@pytest.mark.parametrize(("pattern", "good", "bad"), PATTERNS, ids=[case[0] for case in PATTERNS])
def test_translation(pattern: str, good: list[str], bad: list[str]) -> None:
    made = translate(pattern)
    assert [text for text in good if not allows(made, text)] == []
    assert [text for text in bad if allows(made, text)] == []


@pytest.mark.parametrize("pattern", [r"^(?=a)b$", r"(?<=x)*", r"(?!a)", r"\bword\b", r"(a)\1", "[a", "a\\", r"\k<x>", r"\ud800"])
def test_what_there_is_nothing_for_is_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        translate(pattern)


def test_every_text_but_some() -> None:
    texts = ["", "a", "ab", "b\n", 'q"', "é😀"]
    pattern = none_of(texts)
    for text in [*texts, "abc", "b", "x", "é", "é😀!", "aé"]:
        assert allows(pattern, text) == (text not in texts)
    with pytest.raises(PatternError):
        none_of(["x" * 1000])


FORMATS = [
    ("date", ["2024-02-29", "1999-12-31"], ["2023-02-29", "2024-13-01", "0000-01-01", "24-01-01"]),
    ("date-time", ["2024-05-01T10:20:30Z", "2024-05-01T10:20:30.5+02:00"], ["2024-05-01 10:20:30Z", "2024-05-01T25:00:00Z"]),
    ("time", ["10:20:30Z"], ["10:20", "24:00:00Z"]),
    ("email", ["a.b+c@example.org"], ["a@", "@b", "a b@c"]),
    ("ipv4", ["127.0.0.1"], ["256.1.1.1", "1.2.3"]),
    ("ipv6", ["::1", "2001:db8::8a2e:370:7334", "1:2:3:4:5:6:7:8"], ["1:2", ":::"]),
    ("uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567e89b12d3a456426614174000"]),
    ("uri", ["https://a.org/b?c=d#e", "mailto:a@b.c"], ["a.org", "http:", "http://a b"]),
    ("uri-reference", ["/a/b?c", "a/b", "", "#x", "//h/p", "https://a.org"], ["a b", "1:2/<"]),
    ("hostname", ["a-b.example"], ["-a", "a..b"]),
    ("duration", ["P1Y2M3D", "PT5M", "P3W"], ["P", "1D", "PT"]),
    ("json-pointer", ["", "/a/b~1c"], ["a", "/~2"]),
    ("byte", ["", "YWI=", "YWJj"], ["YW", "Y==="]),
]


@pytest.mark.parametrize(("name", "good", "bad"), FORMATS, ids=[case[0] for case in FORMATS])
def test_formats(name: str, good: list[str], bad: list[str]) -> None:
    pattern = f"^(?:{STRINGS[name]})$"
    assert [text for text in good if not allows(pattern, text)] == []
    assert [text for text in bad if allows(pattern, text)] == []


def test_sets_of_characters() -> None:
    letters = CharSet([(0x61, 0x63), (0x64, 0x66)])
    assert letters.ranges == ((0x61, 0x66),)
    assert 0x61 in letters and 0x67 not in letters and len(letters) == 6
    assert letters.complement().complement() == letters
    assert not ANY.complement()
    assert 0xD800 not in ANY
    assert letters.overlaps(CharSet.of("xf")) and not letters.overlaps(CharSet.of("xyz"))
    assert (letters | CharSet.of("z")).ranges == ((0x61, 0x66), (0x7A, 0x7A))
    assert escape("a1") == "a1" and escape("/") == r"\x{2F}"
