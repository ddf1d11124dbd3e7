"""What clients send is bridged to what a template takes."""

from __future__ import annotations

from typing import Any

import pytest

from puna.chat import Message, SpecialTexts, TextPart, ToolCall, builtin_template, render_chat
from puna.chat.template import ChatTemplate
from puna.chat.values import as_template_value
from puna.errors import InvalidRequest
from tests.unit.chat.helpers import assistant, developer, each_template, made, real, system, user

NONE = SpecialTexts()
LOOP = "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}"
NO_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% endfor %}"
    + LOOP
)
DROPS_SYSTEM = "{% for m in messages if m.role != 'system' %}[{{ m.role }}:{{ m.content }}]{% endfor %}"
SYSTEM_FIRST = (
    "{% for m in messages[1:] %}{% if m.role == 'system' %}{{ raise_exception('System must be first') }}{% endif %}{% endfor %}"
    + LOOP
)
LAST_SYSTEM_WINS = (
    "{% for m in messages if m.role == 'system' and loop.last %}[system:{{ m.content }}]{% endfor %}" + DROPS_SYSTEM
)
KNOWS_DEVELOPER = (
    "{% for m in messages %}{% if m.role == 'developer' %}(dev){% endif %}[{{ m.role }}:{{ m.content }}]{% endfor %}"
)
ALTERNATES = (
    "{% for m in messages if m.role != 'system' %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate') }}{% endif %}{% endfor %}" + LOOP
)
PARTS_ONLY = "{% for m in messages %}[{{ m.role }}:{% for p in m.content %}{{ p.text }}{% endfor %}]{% endfor %}"


def text(template: ChatTemplate, *messages: Message, **options: Any) -> str:
    return render_chat(template, messages, special_tokens=NONE, **options).text


@pytest.mark.parametrize(
    ("source", "messages", "expected"),
    [
        (LOOP, [developer("d"), user("u")], "[system:d][user:u]"),
        (KNOWS_DEVELOPER, [developer("d"), user("u")], "(dev)[developer:d][user:u]"),
        (LOOP, [system("a"), developer("b"), user("u"), system("c")], "[system:a][system:b][user:u][system:c]"),
        (SYSTEM_FIRST, [system("a"), developer("b"), user("u"), system("c")], "[system:a\n\nb\n\nc][user:u]"),
        (SYSTEM_FIRST, [user("u"), system("a")], "[system:a][user:u]"),
        (SYSTEM_FIRST, [system("a"), user("u")], "[system:a][user:u]"),
        (NO_SYSTEM, [system("a"), user("u"), assistant("r"), user("v")], "[user:a\n\nu][assistant:r][user:v]"),
        (DROPS_SYSTEM, [system("a"), user("u"), developer("b")], "[user:a\n\nb\n\nu]"),
        (NO_SYSTEM, [system("a")], "[user:a]"),
        (DROPS_SYSTEM, [system("a")], "[user:a]"),
        (LAST_SYSTEM_WINS, [system("a"), system("b"), user("u")], "[user:a\n\nb\n\nu]"),
        (ALTERNATES, [system("a"), user("u"), assistant("r"), user("v")], "[system:a][user:u][assistant:r][user:v]"),
        (PARTS_ONLY, [system("a"), user("u")], "[system:a][user:u]"),
    ],
)  # fmt: skip
def test_system_text_is_never_lost(source: str, messages: list[Message], expected: str) -> None:
    assert text(made(source), *messages) == expected


@pytest.mark.parametrize("source", [LOOP, PARTS_ONLY])
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a", "[user:a]"),
        ((TextPart("a"),), "[user:a]"),
        ((TextPart("a"), TextPart("b")), "[user:a\nb]"),
        ((), "[user:]"),
        (None, "[user:]"),
    ],
)
def test_content_in_every_form(source: str, content: str | tuple[TextPart, ...] | None, expected: str) -> None:
    assert text(made(source), Message(role="user", content=content)) == expected


def test_refused_order_is_the_templates_own_message() -> None:
    with pytest.raises(InvalidRequest) as caught:
        text(made(ALTERNATES), system("a"), assistant("b"), user("c"))
    assert caught.value.message == "Roles must alternate"


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([user("a"), user("b")], "[user:a\n\nb]"),
        ([user("a"), assistant("b"), assistant("c"), user("d")], "[user:a][assistant:b\n\nc][user:d]"),
        (
            [system("s"), user("a"), user(""), user("b"), assistant("c"), user("d")],
            "[system:s][user:a\n\nb][assistant:c][user:d]",
        ),
    ],
)
def test_repeated_roles_are_joined_where_roles_have_to_alternate(messages: list[Message], expected: str) -> None:
    assert text(made(ALTERNATES), *messages) == expected
    assert text(made(LOOP), user("a"), user("b")) == "[user:a][user:b]"


def test_unknown_role_is_named() -> None:
    with pytest.raises(InvalidRequest, match="banana") as caught:
        text(made(LOOP), user("a"), Message(role="banana", content="b"))
    assert caught.value.param == "messages.1.role"


def test_no_messages_are_refused() -> None:
    with pytest.raises(InvalidRequest) as caught:
        text(made(LOOP))
    assert caught.value.param == "messages"


def test_old_function_role_is_a_tool() -> None:
    old = Message(role="function", name="f", content="b")
    knows_calls = "{{ tools|tojson if tools }}" + LOOP.replace("]{%", "{{ m.tool_calls|tojson if m.tool_calls }}]{%")
    assert text(made(knows_calls), user("a"), old) == "[user:a][tool:b]"
    assert text(made(LOOP), user("a"), old) == "[user:a][user:Result of f:\nb]"


CALLS = "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.arguments ARGUMENTS }}{% endfor %}{% endfor %}"
OBJECTS = CALLS.replace("ARGUMENTS", "|tojson")
ITEMS = CALLS.replace("ARGUMENTS", "|items|list|tojson")
TEXTS = CALLS.replace("ARGUMENTS", "")


@pytest.mark.parametrize(
    ("source", "arguments", "expected"),
    [
        *[(OBJECTS, text, value) for text, value in [('{"a": 1}', {"a": 1}), ("", {}), (" ", {}), ("{", "{"), ("[1]", "[1]")]],
        *[(OBJECTS, text, text) for text in ("null", "[" * 100_000)],
        *[(ITEMS, text, value) for text, value in [('{"a": 1}', {"a": 1}), ("{", {"arguments": "{"}), ("1", {"arguments": "1"})]],
        *[(TEXTS, text, value) for text, value in [('{"a":1}', '{"a":1}'), ("", "{}"), ("{", "{")]],
    ],
)  # fmt: skip
def test_arguments_are_what_the_template_takes(source: str, arguments: str, expected: object) -> None:
    message = Message(role="assistant", tool_calls=(ToolCall("id", "f", arguments),))
    value = as_template_value(message, made(source).capabilities)
    assert value["content"] == ""
    assert value["tool_calls"] == [{"id": "id", "type": "function", "function": {"name": "f", "arguments": expected}}]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{% for m in messages %}{{ m.reasoning }}{{ m.content }}{% endfor %}", {"content": "b", "reasoning": "a"}),
        (LOOP, {"content": "b", "reasoning_content": "a", "thinking": "a"}),
        (
            "{% for m in messages %}{{ m.content.split('</think>')[0] }}{% endfor %}",
            {"content": "<think>\na\n</think>\n\nb"},
        ),
        (
            "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
            "{{ p.thinking if p.type == 'thinking' else p.text }}{% endfor %}{% endif %}{% endfor %}",
            {"content": [{"type": "thinking", "thinking": "a"}, {"type": "text", "text": "b"}]},
        ),
    ],
)
def test_reasoning_goes_where_the_template_reads_it(source: str, expected: dict[str, Any]) -> None:
    message = Message(role="assistant", content="b", reasoning_content="a")
    assert as_template_value(message, made(source).capabilities) == {"role": "assistant", **expected}


def test_no_tools_means_an_empty_list_where_none_fails() -> None:
    assert text(made("{% for t in tools %}{% endfor %}" + LOOP), user("a")) == "[user:a]"
    assert text(made("{{ tools is none }}" + LOOP), user("a")) == "True[user:a]"


@pytest.mark.parametrize(
    "key", ["messages", "tools", "add_generation_prompt", "chat_template", "tokenize", "bos_token", "self", "_x", "a b", ""]
)
def test_reserved_kwargs_are_refused(key: str) -> None:
    with pytest.raises(InvalidRequest, match=repr(key)) as caught:
        text(made(LOOP), user("a"), kwargs={"enable_thinking": True, key: 1})
    assert caught.value.param == f"chat_template_kwargs.{key}"


def test_other_kwargs_reach_the_template() -> None:
    kwargs = {"enable_thinking": False, "reasoning_effort": "low", "documents": [{"title": "t"}]}
    assert (
        text(made("{{ enable_thinking }}{{ reasoning_effort }}{{ documents[0].title }}"), user("a"), kwargs=kwargs) == "Falselowt"
    )


def test_builtin_chatml() -> None:
    assert text(made(builtin_template("chatml")), system("a"), user("b"), assistant("c"), user("d")) == (
        "<|im_start|>system\na<|im_end|>\n<|im_start|>user\nb<|im_end|>\n<|im_start|>assistant\nc<|im_end|>\n"
        "<|im_start|>user\nd<|im_end|>\n<|im_start|>assistant\n"
    )
    with pytest.raises(InvalidRequest, match=r"known: .*chatml"):
        builtin_template("nothing")


@pytest.mark.parametrize(
    ("source", "expected"), [("{{ bos_token }}x", True), ("x{{ bos_token }}", False), ("{{ messages[0].content }}", False)]
)
def test_begin_of_text_is_reported(source: str, expected: bool) -> None:
    rendered = render_chat(made(source), [user("<s>")], special_tokens=SpecialTexts(["<s>"]))
    assert rendered.starts_with_bos is expected


def test_an_empty_bos_is_not_at_the_start() -> None:
    assert not render_chat(ChatTemplate("x", bos_token="", eos_token=""), [user("")], special_tokens=NONE).starts_with_bos


@each_template
def test_real_template_shows_system_text_once_and_first(name: str) -> None:
    template = real(name)
    for messages in (
        [system("Be brief"), user("hi")],
        [developer("Be brief"), user("hi")],
        [system("Be kind"), developer("Be brief"), user("hi")],
        [user("one"), assistant("two"), user("hi"), system("Be brief")],
        [system("Be brief"), user("hi"), assistant("Sure")],
    ):
        rendered = text(template, *messages)
        assert rendered.count("Be brief") == 1
        if messages[-1].role != "system":
            assert rendered.index("Be brief") < rendered.index("hi", rendered.index("Be brief"))
        if messages[0].content == "Be kind":
            assert rendered.index("Be kind") < rendered.index("Be brief")


@each_template
def test_real_template_takes_parts_as_it_takes_strings(name: str) -> None:
    template = real(name)
    assert text(template, Message(role="user", content=(TextPart("hi there"),))) == text(template, user("hi there"))
