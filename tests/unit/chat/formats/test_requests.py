"""What is asked of a turn beside its tools: that there is a call or none, one or several, a form of the answer."""

from __future__ import annotations

from typing import Any

import pytest

from puna.chat.formats.plan import Format, Tool, TurnRequest
from puna.chat.formats.table import choose_format
from puna.errors import InvalidRequest
from puna.grammar import prepare
from puna.types import Constraint
from tests.unit.chat.formats.harness import TOOLS, accepts, parse

ANSWER = Constraint("json_schema", '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}')
HERMES = choose_format("<think></think>", "hermes")
OPEN = "<|im_start|>assistant\n<think>\n"
NOW = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
HARMONY_NOW = "<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}"
R1_NOW = (
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```"
    "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
)
XML = choose_format("", "qwen-xml")


def takes(form: Format, request: TurnRequest, text: str) -> bool:
    constraint = form.plan(request).constraint
    assert constraint is not None and not constraint.triggers
    return accepts(prepare(constraint).compiled, text.encode())


def test_the_answer_is_held_to_its_form_after_free_thoughts() -> None:
    request = TurnRequest(answer=ANSWER)
    assert takes(HERMES, request, '{"n":1}')
    assert takes(HERMES, request, '<think>\nfree {"n": "x"\n</think>\n\n{"n":1}')
    assert not takes(HERMES, request, "<think>\nfree\n</think>\n\nfree")
    assert not takes(HERMES, request, "free")
    opened = TurnRequest(answer=ANSWER, prompt=OPEN)
    assert takes(HERMES, opened, 'free\n</think>\n\n{"n":1}')
    assert not takes(HERMES, opened, '{"n":1}')


@pytest.mark.parametrize(("name", "call"), [("hermes", NOW), ("gpt-oss", HARMONY_NOW), ("deepseek-r1", R1_NOW)])
def test_beside_tools_the_model_calls_or_answers_in_form(name: str, call: str) -> None:
    form = choose_format("<think></think>", name)
    answer = '{"n":1}' if name != "gpt-oss" else '<|channel|>final<|message|>{"n":1}'
    request = TurnRequest(tools=TOOLS, answer=ANSWER)
    assert takes(form, request, answer)
    assert takes(form, request, call)
    assert not takes(form, request, "free")
    never = TurnRequest(tools=TOOLS, answer=ANSWER, choice="none")
    assert takes(form, never, answer)
    assert not takes(form, never, call)
    must = TurnRequest(tools=TOOLS, answer=ANSWER, choice="required")
    assert takes(form, must, call)
    assert not takes(form, must, answer)
    message = parse(form.plan(request), [answer])
    assert message.content == '{"n":1}' and not message.tool_calls
    assert [one.name for one in parse(form.plan(request), [call]).tool_calls] == ["now"]


def test_a_named_tool_is_called() -> None:
    (now,) = (tool for tool in TOOLS if tool.name == "now")
    request = TurnRequest(tools=(now,), choice="required", prompt=OPEN)
    assert takes(HERMES, request, f"hm</think>\n\n{NOW}")
    assert not takes(HERMES, request, f"hm</think>\n\n{NOW.replace('now', 'run_code')}")


def test_there_are_several_calls_only_if_that_is_wanted() -> None:
    both = f"{NOW}\n{NOW}"
    assert takes(HERMES, TurnRequest(tools=TOOLS, choice="required"), both)
    one = TurnRequest(tools=TOOLS, choice="required", parallel=False)
    assert takes(HERMES, one, NOW)
    assert not takes(HERMES, one, both)


def test_no_call_can_be_written_where_none_is_wanted() -> None:
    request = TurnRequest(tools=TOOLS, choice="none")
    assert takes(HERMES, request, "free <tool_cal")
    assert takes(HERMES, request, "<think>\n<tool_call>\n</think>\n\nfree")
    assert not takes(HERMES, request, f"free {NOW}")
    llama = choose_format("", "llama3")
    assert takes(llama, request, 'free {"name": "')
    assert not takes(llama, request, '{"name": "now", "parameters": {}}')
    harmony = choose_format("", "gpt-oss")
    final = "<|channel|>final<|message|>free"
    assert takes(harmony, request, f"<|channel|>analysis<|message|>hm<|end|><|start|>assistant{final}")
    assert not takes(harmony, request, HARMONY_NOW)


def test_thoughts_are_text_where_they_are_not_told_apart() -> None:
    request = TurnRequest(tools=TOOLS, separate_reasoning=False)
    raw = f"<think>\n<tool_call>\n</think>\n\nHi.\n{NOW}"
    message = parse(HERMES.plan(request), list(raw))
    assert (message.content, message.reasoning_content) == ("<think>\n<tool_call>\n</think>\n\nHi.", None)
    assert [call.name for call in message.tool_calls] == ["now"]
    opened = HERMES.plan(TurnRequest(separate_reasoning=False, prompt=OPEN))
    assert opened.forced_open == "<think>\n"
    assert parse(opened, ["hm</think>\nHi. "]).content == "hm</think>\nHi. "


def test_without_tools_and_thoughts_text_is_left_alone() -> None:
    plan = choose_format("{{ messages }}").plan(TurnRequest())
    raw = f" \n<think>a</think> {NOW}\n "
    assert plan.constraint is None and parse(plan, list(raw)).content == raw
    parser = plan.parser()
    assert [event.text for event in parser.feed(" a \n")] == [" a \n"]  # type: ignore[union-attr]  # only a text has come


def test_strict_tools_are_enforced_or_refused() -> None:
    def tool(schema: dict[str, Any], *, strict: bool = True) -> Tool:
        return Tool(name="f", parameters={"type": "object", "properties": {"x": schema}, "required": ["x"]}, strict=strict)

    pattern = {"type": "string", "pattern": "^(?=a)"}
    for form in (HERMES, XML):
        with pytest.raises(InvalidRequest, match=r"f.*pattern") as caught:
            prepare(form.plan(TurnRequest(tools=(tool(pattern),), choice="required")).constraint or ANSWER)
        assert caught.value.param == "tools"
    call = "<tool_call>\n<function=f>\n<parameter=x>\n{}\n</parameter>\n</function>\n</tool_call>"
    loose = form.plan(TurnRequest(tools=(tool(pattern, strict=False),), choice="required"))
    assert loose.constraint is not None
    (warning,) = prepare(loose.constraint).warnings
    assert warning.startswith("f.x: ") and "pattern" in warning
    short = TurnRequest(tools=(tool({"type": "string", "maxLength": 2}),), choice="required")
    assert takes(XML, short, call.format("ab"))
    assert not takes(XML, short, call.format("abcdef"))
    listed = TurnRequest(tools=(tool({"enum": ["a", "b"]}),), choice="required")
    assert takes(XML, listed, call.format("a"))
    assert not takes(XML, listed, call.format("c"))
