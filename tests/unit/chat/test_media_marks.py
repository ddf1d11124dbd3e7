"""Marks of pictures and sounds come through every real template, each once, in their order, and with no token of its own."""

from __future__ import annotations

from puna.chat import MarkPart, Message, SpecialTexts, TextPart, ToolCall, render_chat
from puna.chat.messages import Part
from puna.chat.tool_texts import format_of, texts_of
from tests.unit.chat.helpers import each_template, real

MARKS = [f"media0123abcdn{index}z" for index in range(4)]


def parts(*texts: str) -> tuple[Part, ...]:
    return tuple(MarkPart(text) if text in MARKS else TextPart(text) for text in texts)


def rendered(name: str, *messages: Message) -> str:
    template = real(name)
    special = SpecialTexts(["<s>", "</s>", "<|im_start|>", "<|im_end|>"])
    return render_chat(template, messages, special_tokens=special, texts=texts_of(format_of(template))).text


def plain(text: str) -> str:
    for mark in MARKS:
        text = text.replace(mark, "")
    return text


@each_template
def test_marks_in_a_conversation(name: str) -> None:
    messages = (
        Message(role="user", content=parts("QUESTION-ONE", MARKS[0], MARKS[1], "QUESTION-TWO")),
        Message(role="assistant", content="REPLY-ONE"),
        Message(role="user", content=parts(MARKS[2], "QUESTION-THREE")),
    )
    text = rendered(name, *messages)
    places = [text.find(one) for one in ("QUESTION-ONE", *MARKS[:2], "QUESTION-TWO", "REPLY-ONE", MARKS[2], "QUESTION-THREE")]
    assert -1 not in places and places == sorted(places)
    assert [text.count(mark) for mark in MARKS] == [1, 1, 1, 0]
    # a template's own tokens of pictures would make two of one
    words = (
        Message(role="user", content="QUESTION-ONEQUESTION-TWO"),
        messages[1],
        Message(role="user", content="QUESTION-THREE"),
    )
    assert plain(text) == rendered(name, *words)


@each_template
def test_marks_in_what_a_tool_gave_back(name: str) -> None:
    text = rendered(
        name,
        Message(role="user", content=parts("look", MARKS[0])),
        Message(role="assistant", tool_calls=(ToolCall(id="abcdefgh1", name="look"),)),
        Message(role="tool", content=parts("seen:", MARKS[1]), tool_call_id="abcdefgh1", name="look"),
    )
    places = [text.find(one) for one in ("look", MARKS[0], "seen:", MARKS[1])]
    assert -1 not in places and places == sorted(places) and text.count(MARKS[1]) == 1
