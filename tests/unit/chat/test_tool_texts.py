"""Tools, calls and results in a family's own form, where its template does not write them."""

from __future__ import annotations

import pytest

from puna.chat import SpecialTexts, ToolCall, render_chat
from puna.chat.events import CallArguments, CallBegin, MessageBuilder
from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.plan import Tool, TurnRequest
from puna.chat.formats.table import NAMES, choose_format
from puna.chat.formats.written import can_write, write_calls
from puna.chat.tool_texts import GENERIC, format_of, texts_of
from tests.unit.chat.conversations import TOOLS, adding, calling, result, weather
from tests.unit.chat.helpers import made, real, user

MADE = (
    ToolCall("aB3dE5gH7", "get_weather", '{"city": "Paris"}'),
    ToolCall("aB3dE5gH8", "add", '{"a": 1, "b": 2.5, "deep": [{"x": null}, true, "ä"]}'),
)
ASKED = TurnRequest(
    tools=tuple(Tool(name=tool["function"]["name"], parameters=tool["function"]["parameters"]) for tool in TOOLS),
)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_read_again(name: str) -> None:
    form = choose_format("", name)
    if not isinstance(form, DescribedFormat) or form.description.calls is None or not can_write(form.description.calls):
        assert texts_of(form) is GENERIC
        return
    calls = MADE if form.description.calls.parallel else MADE[:1]
    text = write_calls(form.description.calls, calls)
    parser = form.plan(ASKED).parser()
    events = [*parser.feed(text), *parser.finish()]
    builder = MessageBuilder()
    builder.feed(events)
    message = builder.message()
    assert [call.name for call in message.tool_calls] == [call.name for call in calls]
    assert [_normal(call.arguments) for call in message.tool_calls] == [_normal(call.arguments) for call in calls]
    assert {type(event) for event in events} >= {CallBegin, CallArguments}


def _normal(arguments: str) -> str:
    return "".join(arguments.split())


def test_calls_in_history_are_the_templates_own_where_it_shows_them() -> None:
    template = real("deepseek-ai-DeepSeek-V3.1")
    form = format_of(template)
    turns = [user("both?"), calling(weather("Paris"), adding()), result("18", "call_weather_1"), result("3", "call_add_2")]
    text = render_chat(template, turns, special_tokens=SpecialTexts(), tools=TOOLS, texts=texts_of(form)).text
    begin = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>"
    assert form.name == "deepseek-v3.1"
    assert begin + 'function name<｜tool▁sep｜>{"argument": "value"}' in text
    assert begin + 'get_weather<｜tool▁sep｜>{"city": "Paris"}' in text
    assert "<tool_call>" not in text and "Result of" not in text


def test_templates_without_calls_get_the_generic_form() -> None:
    template = made("{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}")
    form = format_of(template)
    text = render_chat(
        template, [user("weather?"), calling(weather("Paris"))], special_tokens=SpecialTexts(), tools=TOOLS, texts=texts_of(form)
    ).text
    assert form.name == "generic"
    assert text.endswith('[assistant:<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>]')


def test_marks_of_calls_stay_control_tokens_in_the_assistants_text() -> None:
    source = (
        "{{ tools|tojson if tools }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
        '{% if false %}<tool_call>{"name": "f", "arguments": {}}</tool_call>{% endif %}'
    )
    template = made(source)
    texts = texts_of(format_of(template))
    special = SpecialTexts(["<tool_call>", "</tool_call>"])
    turns = [user("<tool_call>"), calling(weather("Paris")), user("</tool_call>")]
    rendered = render_chat(template, turns, special_tokens=special, tools=TOOLS, texts=texts)
    trusted = "".join(segment.text for segment in rendered.segments if segment.trusted)
    assert texts.own and trusted.count("<tool_call>") == trusted.count("</tool_call>") == 1
