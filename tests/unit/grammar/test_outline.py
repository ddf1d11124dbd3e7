"""Outlines as grammars: what they take, with marks that are control tokens of the vocabulary and without."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest
from llguidance import LLMatcher, LLTokenizer, TokenizerWrapper

from puna.errors import InvalidRequest
from puna.grammar import prepare
from puna.outline import Alt, Branch, Free, Node, Outline, Part, Pattern, Repeat, Text, alt, as_constraint, seq
from puna.types import Constraint, Trigger

MARKS = ("<a>", "</a>", "|x|")
THOUGHT = seq("<a>", Free((Branch("</a>", seq("done")),)))
CALL = Free((Branch("<a>", seq("1", "</a>")), Branch("<b>", seq("2"))), ends=True)
SPLIT = Free((Branch("<|x|call>", seq("!")),))
OBJECT = '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}'
SCHEMA = Part(Constraint("json_schema", OBJECT), spaced=True)


class Vocabulary:
    """Bytes and the marks."""

    def __init__(self) -> None:
        self.tokens = [*(bytes([byte]) for byte in range(256)), *(mark.encode() for mark in MARKS), b"<end>"]
        self.special_token_ids = list(range(256, len(self.tokens)))
        self.eos_token_id = len(self.tokens) - 1
        self.bos_token_id = None

    def __call__(self, data: bytes | str) -> list[int]:
        return list(data.encode() if isinstance(data, str) else data)


VOCABULARY = LLTokenizer(TokenizerWrapper(Vocabulary()))
IDS = {mark: 256 + place for place, mark in enumerate(MARKS)}


def takes(node: Node, pieces: Sequence[str | int], *, control: bool = False) -> bool:
    """Whether the outline has exactly this, given as texts and tokens."""
    compiled = prepare(as_constraint(Outline(node)), preserved=IDS if control else {}).compiled
    matcher = LLMatcher(VOCABULARY, compiled, log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    tokens = [token for piece in pieces for token in ([piece] if isinstance(piece, int) else piece.encode())]
    return matcher.try_consume_tokens(tokens) == len(tokens) and bool(matcher.is_accepting())


def in_tokens(text: str) -> list[str | int]:
    """A text with the marks in it as tokens."""
    pieces: list[str | int] = [text]
    for mark, token in IDS.items():
        split: list[str | int] = []
        for piece in pieces:
            parts: list[str | int] = [*piece.split(mark)] if isinstance(piece, str) else [piece]
            for place, part in enumerate(parts):
                split += [token] if place else []
                split.append(part)
        pieces = split
    return pieces


CASES = [
    (THOUGHT, ["<a></a>done", "<a>x < </ y</a>done", "<a>é\n\n</a>done"], ["<a>", "<a>b", "<a>b</a>", "<a></a>done."]),
    (CALL, ["", "any < text", "t<a>1</a>", "<b>2", "x<b>2"], ["<a>", "<a>2", "<b>1", "t<a>1</a>x", "<b>2x"]),
    (SPLIT, ["<|x|call>!", "1 < 2 <<|x|call>!", "a<b><|x|call>!"], ["<|x|call>", "<|x|cal>!", "none"]),
    (Repeat(seq("ab"), 1, 2), ["ab", "abab"], ["", "ababab", "a"]),
    (Repeat(seq("ab")), ["", "ab", "ababab"], ["a"]),
    (Repeat(seq("ab"), 2), ["abab", "ababab"], ["ab"]),
    (alt([seq("a", Pattern("[0-9]{2}")), seq("b")]), ["a12", "b"], ["a1", "a", "", "ab"]),
    (Alt((seq("a"),)), ["a"], ["", "b"]),
    (Free((Branch("</a>", seq()),), low=2, high=3), ["xx</a>", "xéx</a>"], ["x</a>", "xxxx</a>"]),
    (Free(ends=True, without=("<a>",)), ["", "a < b <a"], ["<a>", "x<a>y"]),
    (seq("=", SCHEMA, ";"), ['={"n":1};', '={"n": 1};', '={"n": 1, "m": "x"};'], ['={"n":  1};', "={};", '={"n":""};']),
]  # fmt: skip


@pytest.mark.parametrize("control", [False, True], ids=["text", "control-tokens"])
@pytest.mark.parametrize("place", range(len(CASES)))
def test_an_outline_has_what_it_says(place: int, control: bool) -> None:
    node, good, bad = CASES[place]
    for text in good:
        assert takes(node, in_tokens(text) if control else [text], control=control), text
    for text in bad:
        assert not takes(node, in_tokens(text) if control else [text], control=control), text


def test_a_mark_that_is_a_token_cannot_be_spelled() -> None:
    for node, text in ((THOUGHT, "<a>x</a>done"), (CALL, "t<a>1</a>"), (SPLIT, "<|x|call>!"), (CALL, "<a>")):
        assert not takes(node, [text], control=True), text


def test_neighbouring_texts_are_one() -> None:
    assert seq("a", "", "b", seq("c", Pattern("d")), seq()) == seq(Text("abc"), Pattern("d"))


def test_what_is_wrong_with_a_part_is_said_with_its_name_and_field() -> None:
    part = Part(Constraint("json_schema", '{"type": "strnig"}'), label="get_weather", param="tools.0")
    with pytest.raises(InvalidRequest, match=r"get_weather: .*'strnig' is not a type") as caught:
        prepare(as_constraint(Outline(part)))
    assert caught.value.param == "tools.0"


def test_what_is_not_enforced_of_a_part_is_said_with_its_name() -> None:
    loose = Constraint("json_schema", '{"type": "string", "pattern": "^(?=.{3})"}')
    (warning,) = prepare(as_constraint(Outline(Part(loose, label="f.x")))).warnings
    assert warning.startswith("f.x: ") and "looks ahead" in warning
    strict = Constraint("json_schema", loose.source, strict=True)
    with pytest.raises(InvalidRequest, match=r"f\.x: .*strict"):
        prepare(as_constraint(Outline(Part(strict, label="f.x"))))


@pytest.mark.parametrize(
    ("part", "good", "bad"),
    [
        (Constraint("regex", "[0-9]+"), "12", "x"),
        (Constraint("choice", '["yes", "no"]'), "no", "maybe"),
        (Constraint("gbnf", 'root ::= "a" b\nb ::= [0-9] b | ""'), "a12", "12"),
        (Constraint("lark", "start: A B?\nA: /a/\nB: /b/"), "ab", "b"),
    ],
    ids=["regex", "choice", "gbnf", "lark"],
)
def test_every_kind_of_constraint_can_be_a_part(part: Constraint, good: str, bad: str) -> None:
    node = Free((Branch("</a>", Part(part)),))
    assert takes(node, [f"t</a>{good}"])
    assert not takes(node, [f"t</a>{bad}"])


def test_a_trigger_that_begins_with_a_control_token_is_that_token() -> None:
    constraint = as_constraint(Outline(seq("<a>call x")))
    triggers = (Trigger("word", "<a>call"), Trigger("word", "call"), Trigger("pattern", "<a>call"))
    prepared = prepare(Constraint("outline", constraint.source, triggers=triggers), preserved=IDS)
    assert [trigger.value for trigger in prepared.triggers] == ["<a>", "call", "<a>call"]
    assert json.loads(prepared.compiled)["grammars"]
