"""The assistant's last message is continued where it stopped."""

from __future__ import annotations

import pytest

from puna.chat import Message, Segment, SpecialTexts, TextPart, ToolCall, builtin_template, render_chat
from puna.errors import InvalidRequest
from tests.unit.chat.helpers import assistant, each_template, made, real, system, user

CHATML = SpecialTexts(["<|im_start|>", "<|im_end|>"])
DIALOGUE = [user("hi"), assistant("Sure, ")]


def prompt(name: str, *messages: Message) -> str:
    return render_chat(real(name), messages, special_tokens=SpecialTexts()).text


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("Qwen-Qwen2.5-7B-Instruct", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nSure, "),
        ("Qwen-Qwen3-0.6B", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\nSure, "),
        ("LFM2-8B-A1B", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nSure, "),
        ("meta-llama-Llama-3.2-3B-Instruct", "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nSure, "),
        ("mistralai-Mistral-Nemo-Instruct-2407", "<s>[INST]hi[/INST]Sure, "),
        ("google-gemma-2-2b-it", "<start_of_turn>user\nhi<end_of_turn>\n<start_of_turn>model\nSure, "),
        ("openai-gpt-oss-120b", "<|start|>assistant<|channel|>final<|message|>Sure, "),
    ],
)
def test_real_template_leaves_the_turn_open(name: str, end: str) -> None:
    assert prompt(name, *DIALOGUE).endswith(end)


@each_template
def test_every_template_ends_with_the_prefill(name: str) -> None:
    assert prompt(name, *DIALOGUE).endswith("Sure, ")
    assert prompt(name, system("Be brief"), *DIALOGUE, user("more"), assistant("Well")).endswith("Well")


THINKING = Message(role="assistant", reasoning_content="I wonder")


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("Qwen-Qwen3-0.6B", "<|im_start|>assistant\n<think>\nI wonder"),
        ("deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "<｜Assistant｜><think>\nI wonder"),
        ("openai-gpt-oss-120b", "<|start|>assistant<|channel|>analysis<|message|>I wonder"),
    ],
)
def test_thoughts_without_an_answer_are_continued(name: str, end: str) -> None:
    assert prompt(name, user("hi"), THINKING).endswith(end)


@each_template
def test_every_template_that_thinks_goes_on_thinking(name: str) -> None:
    try:
        assert prompt(name, user("hi"), THINKING).endswith("I wonder")
    except InvalidRequest as error:
        assert "no reasoning that could be continued" in error.message


def test_system_text_survives_a_template_that_shows_it_with_the_last_question() -> None:
    assert prompt("mistralai-Mistral-Nemo-Instruct-2407", system("Be brief"), *DIALOGUE) == "<s>[INST]Be brief\n\nhi[/INST]Sure, "


def test_a_template_that_refuses_a_last_assistant_opens_the_turn() -> None:
    source = (
        "{% if messages[-1].role == 'assistant' %}{{ raise_exception('no') }}{% endif %}"
        "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}{% if add_generation_prompt %}[assistant:{% endif %}"
    )
    assert render_chat(made(source), DIALOGUE, special_tokens=CHATML).text == "[user:hi][assistant:Sure, "
    with pytest.raises(InvalidRequest, match=r"^no$"):
        render_chat(made(source), [assistant("a")], special_tokens=CHATML)


@pytest.mark.parametrize(
    ("add", "go_on", "end"),
    [
        (None, None, "assistant\nSure, "),
        (None, True, "assistant\nSure, "),
        (False, True, "assistant\nSure, "),
        (True, None, "Sure, <|im_end|>\n<|im_start|>assistant\n"),
        (True, False, "Sure, <|im_end|>\n<|im_start|>assistant\n"),
        (None, False, "Sure, <|im_end|>\n<|im_start|>assistant\n"),
        (False, None, "assistant\nSure, <|im_end|>\n"),
        (False, False, "assistant\nSure, <|im_end|>\n"),
    ],
)
def test_flags(add: bool | None, go_on: bool | None, end: str) -> None:
    rendered = render_chat(
        made(builtin_template("chatml")), DIALOGUE, special_tokens=CHATML, add_generation_prompt=add, continue_final_message=go_on
    )
    assert rendered.text.endswith(end)


def test_contradicting_flags_are_refused() -> None:
    template = made(builtin_template("chatml"))
    for messages, add in (
        (DIALOGUE, True),
        ([user("a")], None),
        ([Message(role="assistant", tool_calls=(ToolCall("1", "f"),))], False),
    ):
        with pytest.raises(InvalidRequest) as caught:
            render_chat(template, messages, special_tokens=CHATML, add_generation_prompt=add, continue_final_message=True)
        assert caught.value.param == "continue_final_message"


@pytest.mark.parametrize("content", ["", None, (), (TextPart("a"), TextPart("b")), "  spaces kept \n", "\ue000"])
def test_content_in_every_form(content: str | tuple[TextPart, ...] | None) -> None:
    message = Message(role="assistant", content=content)
    rendered = render_chat(made(builtin_template("chatml")), [user("q"), message], special_tokens=CHATML)
    assert rendered.text.endswith("<|im_start|>assistant\n" + message.text)


def test_a_call_of_tools_is_not_continued() -> None:
    call = Message(role="assistant", content="a", tool_calls=(ToolCall("1", "f"),))
    rendered = render_chat(made(builtin_template("chatml")), [user("q"), call], special_tokens=CHATML)
    assert rendered.text.endswith("</tool_call><|im_end|>\n<|im_start|>assistant\n")


def test_a_prefill_does_not_forge() -> None:
    rendered = render_chat(made(builtin_template("chatml")), [user("q"), assistant("a<|im_end|>b")], special_tokens=CHATML)
    assert rendered.segments[-1] == Segment("assistant\na<|im_end|>b", False)
    assert rendered.text.endswith("<|im_start|>assistant\na<|im_end|>b")
