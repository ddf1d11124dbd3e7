"""Every real template shows conversations of every kind."""

from __future__ import annotations

import json
from typing import Any

from puna.chat import ChatTemplate, Message, SpecialTexts, ToolCall, render_chat
from puna.chat.tool_texts import format_of, texts_of
from tests.unit.chat.conversations import CASES, TOOLS, adding, calling, result, thinking, weather
from tests.unit.chat.helpers import assistant, each_template, real, system, user

NONE = SpecialTexts()


def shown(template: ChatTemplate, *messages: Message, tools: bool = True) -> str:
    return render_chat(
        template, messages, special_tokens=NONE, texts=texts_of(format_of(template)), tools=TOOLS if tools else None
    ).text


def in_order(text: str, *parts: str) -> bool:
    place = 0
    for part in parts:
        place = text.find(part, place)
        if place < 0:
            return False
        place += len(part)
    return True


@each_template
def test_every_conversation_renders(name: str) -> None:
    template = real(name)
    for messages, tools in CASES.values():
        text = render_chat(template, messages, special_tokens=NONE, texts=texts_of(format_of(template)), tools=tools).text
        last = messages[-1].text.strip().splitlines()[-1]
        assert last in text or json.dumps(last, ensure_ascii=False)[1:-1] in text


@each_template
def test_tools_are_described(name: str) -> None:
    text = shown(real(name), system("Be brief"), user("hello"))
    assert in_order(text, "hello") and "Be brief" in text
    assert "get_weather" in text and "Weather of a city" in text and "city" in text and "add" in text
    assert "get_weather" not in shown(real(name), user("hello"), tools=False)


@each_template
def test_calls_and_results_are_shown_in_their_order(name: str) -> None:
    template = real(name)
    turns = [
        user("both?"),
        calling(weather("Paris"), adding()),
        result("18 degrees", "call_weather_1"),
        result("1234", "call_add_2"),
    ]
    text = shown(template, *turns, assistant("Warm"), user("thanks"))
    body = text[text.index("both?") :]
    assert in_order(body, "Paris", "18 degrees", "1234", "Warm", "thanks")
    assert in_order(body, "get_weather", "add") and "2.5" in body
    assert body.count("Paris") == body.count("18 degrees") == 1
    assert in_order(shown(template, *turns), "Paris", "18 degrees", "1234")
    if not template.capabilities.parallel_tool_calls and template.capabilities.tool_calls:
        assert in_order(body, "Paris", "18 degrees", "2.5", "1234")


def schemas(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


SCHEMAS: list[Any] = [
    None,
    {},
    {"type": "object"},
    {"type": "object", "additionalProperties": {"type": "string"}},
    schemas(a={"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}, b={"oneOf": [{"enum": [1]}]}),
    schemas(a={"type": ["string", "null"], "description": None}, b=True, type={"const": 5}),
    schemas(a=schemas(b={"type": "array", "items": schemas(c={"enum": ["x", 1, None]})}), d={"type": "array"}),
    {"$defs": {"X": schemas(y={"type": "integer"})}, **schemas(a={"$ref": "#/$defs/X"}), "required": ["a"]},
]
"""Parameters as tools of real clients have them."""


@each_template
def test_schemas_of_every_kind(name: str) -> None:
    template = real(name)
    for index, parameters in enumerate(SCHEMAS):
        function = {"name": f"tool_{index}", "parameters": parameters}
        tools = [{"type": "function", "function": {key: value for key, value in function.items() if value is not None}}]
        text = render_chat(template, [user("hello")], special_tokens=NONE, texts=texts_of(format_of(template)), tools=tools).text
        assert f"tool_{index}" in text and "hello" in text


@each_template
def test_damaged_calls_do_not_end_the_conversation(name: str) -> None:
    for arguments in ("[1, 2]", '"text"', "", '{"city": "Par'):
        call = ToolCall("call_1", "get_weather", arguments)
        text = shown(real(name), user("weather?"), calling(call), result("18 degrees", "call_1"))
        assert "18 degrees" in text and arguments.strip('"') in text.replace("\\", "")


@each_template
def test_reasoning_is_shown_where_the_template_reads_it(name: str) -> None:
    template = real(name)
    looking = calling(weather("Oslo"), text="Let me look", reasoning="THEY-WANT-OSLO")
    turns = [user("weather?"), looking, result("cold", "call_weather_1")]
    kwargs = template.capabilities.thinking(True)
    text = render_chat(template, turns, special_tokens=NONE, texts=texts_of(format_of(template)), tools=TOOLS, kwargs=kwargs).text
    reread = render_chat(
        template,
        [user("a"), thinking("b", "THEY-WANT-OSLO")],
        special_tokens=NONE,
        texts=texts_of(format_of(template)),
        add_generation_prompt=False,
        kwargs=kwargs,
    ).text
    again = render_chat(
        template,
        [user("a"), thinking("b", "THEY-WANT-OSLO"), user("c")],
        special_tokens=NONE,
        texts=texts_of(format_of(template)),
        kwargs=kwargs,
    ).text
    assert ("THEY-WANT-OSLO" in text + reread + again) is (template.capabilities.reasoning is not None)
    assert "Oslo" in text and "cold" in text


@each_template
def test_messages_of_one_role_in_a_row_are_all_shown(name: str) -> None:
    text = shown(real(name), user("one"), user("two"), assistant("three"), assistant("four"), user("five"), tools=False)
    assert in_order(text, "one", "two", "three", "four", "five")


def test_thoughts_that_are_blocks_of_the_content() -> None:
    template = real("Apertus-8B-Instruct")
    assert template.capabilities.reasoning == "blocks"
    call = weather("Oslo")
    turns = [user("a"), calling(call, reasoning="Hm."), result("cold", call.id), assistant("It is cold."), user("b")]
    text = shown(template, *turns, thinking("c", "So."), user("d"), assistant("We"))
    assert in_order(text, "<|inner_prefix|>Hm.<|tools_prefix|>[{", "cold]<|inner_suffix|>It is cold.")
    assert in_order(text, "<|inner_prefix|>So.<|inner_suffix|>c<|assistant_end|>", "<|assistant_start|>We")
    assert text.endswith("We")
