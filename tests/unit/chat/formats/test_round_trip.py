"""What a real template writes for an earlier turn is read as that turn."""

from __future__ import annotations

import json

import pytest

from puna.chat import Message, SpecialTexts, ToolCall, render_chat
from puna.chat.formats.plan import TurnRequest
from puna.chat.tool_texts import format_of, texts_of
from puna.grammar import prepare
from tests.unit.chat.formats.harness import TOOLS, accepts, parse, plain
from tests.unit.chat.helpers import each_template, real, user

ENDS = (
    "<|im_end|>", "<|user|>", "<|observation|>", "[e~[", "<seed:eos>", "<SPECIAL_12>", "<|END_OF_TURN_TOKEN|>", "<|role_end|>",
    "<turn|>", "<|tool_response>", "<end_of_sentence>", "<｜end▁of▁sentence｜>", "</assistant>", "<|end_of_msg|>", "<|eot|>",
    "<｜hy_eos:opensource｜>", "<|START_OF_TURN_TOKEN|>", "<|eot_id|>", "</s>", "<|end_of_text|>", "<|begin|>tool", "<|call|>",
    "<|return|>", "<end_of_turn>", "<|eom_id|>", "<|message_sep|>\n\nfunction result", "[RESULT", "<|begin_tool_result|>",
    "<|close|>message", "\n\n<sep>", "\n\nUser: ", "<|tool▁outputs▁begin｜>", "<｜tool▁outputs▁begin｜>",
)  # fmt: skip
"""Texts that end a turn in some family."""

NOT_SO = {
    "Apriel-1.6-15b-Thinker-fixed": "leaves the line out that opens thoughts",
    "NVIDIA-Nemotron-Nano-v2": "opens thoughts before a last answer that has its own",
    "llama-cpp-rwkv-world": "opens thoughts in the prompt, and has none in answers",
}
"""Templates that write answers otherwise than the model does."""

UNLIKE = {
    "Apriel-1.6-15b-Thinker-fixed": "has ids",
    "CohereForAI-c4ai-command-r-plus-tool_use": "breaks the arguments into lines",
    "LFM2.5-8B-A1B": "has strings between single quotes",
    "Qwen-QwQ-32B": "opens thoughts in the prompt, and has none in calls",
    "StepFun3.5-Flash": "has no line end between calls",
    "deepseek-ai-DeepSeek-V4": "has an empty line for no arguments",
    "deepseek-ai-DeepSeek-V4-Flash-0731": "has an empty line for no arguments",
    "llama-cpp-rwkv-world": "opens thoughts in the prompt, and has none in answers",
    "llm-jp-llm-jp-4.1-8b-thinking": "ends a message with another mark than gpt-oss",
    "poolside-Laguna-XS-2.1": "has line ends that the model does not write",
    "poolside-Laguna-XS.2": "has line ends that the model does not write",
    "unsloth-Apriel-1.5": "has ids",
}
"""Templates that write calls otherwise than the grammar lets the model."""

ARGUMENTS = {
    "city": 'Par"is\n</x>',
    "days": 2,
    "where": {"lat": 1.5, "names": ["a", 'ü "b"\n']},
    "unit": "C",
    "exact": True,
}
CALLS = (ToolCall("functions.get_weather:0", "get_weather", json.dumps(ARGUMENTS)), ToolCall("functions.now:1", "now", "{}"))
TOOL_VALUES = [
    {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters}}
    for tool in TOOLS
]
NONE = SpecialTexts()


def written(name: str, turn: Message, *, thinks: bool) -> tuple[str, str]:
    """The prompt, and the text of the turn that follows it."""
    template, form = real(name), format_of(real(name))
    kwargs = template.capabilities.thinking(thinks)
    results = [Message(role="tool", content="RESULT", tool_call_id=call.id) for call in turn.tool_calls]

    def text(*messages: Message, prompt: bool) -> str:
        return render_chat(
            template,
            messages,
            special_tokens=NONE,
            tools=TOOL_VALUES,
            kwargs=kwargs,
            add_generation_prompt=prompt,
            texts=texts_of(form),
        ).text

    prompt = text(user("question"), prompt=True)
    whole = text(user("question"), turn, *results, prompt=False)
    common = next((at for at, (a, b) in enumerate(zip(prompt, whole, strict=False)) if a != b), min(len(prompt), len(whole)))
    begun = prompt[:common].rstrip("<|｜/")  # not half a tag
    raw = whole[len(begun) :].removeprefix("<|CHATBOT_TOKEN|>")
    if name.startswith(("microsoft-Phi", "unsloth-Apriel", "Apriel")):
        raw = raw.split("\n<|end|>")[0].split("<|end|>")[0]
    ends = [place for end in ENDS if (place := raw.find(end)) >= 0]
    return begun, raw[: min(ends, default=len(raw))]


def read(name: str, prompt: str, raw: str) -> Message:
    form = format_of(real(name))
    if form.name == "generic" and real(name).capabilities.tool_calls:
        pytest.skip("this family is not known")
    return parse(form.plan(TurnRequest(tools=TOOLS, prompt=prompt)), [raw])


@each_template
def test_calls_are_read_as_they_were_written(name: str) -> None:
    capabilities = real(name).capabilities
    calls = CALLS if capabilities.parallel_tool_calls or not capabilities.tool_calls else CALLS[:1]
    text = "SAY" if capabilities.calls_with_text else None
    turn = Message(role="assistant", content=text, reasoning_content="THINK", tool_calls=calls)
    prompt, raw = written(name, turn, thinks=True)
    message = read(name, prompt, raw)
    found = [(call.name, json.loads(call.arguments)) for call in message.tool_calls]
    assert found == [("get_weather", ARGUMENTS), ("now", {})][: len(calls)], (raw, message)
    if message.reasoning_content != "THINK\n\nSAY":
        said = ("SAY" if "SAY" in raw else None, "THINK" if "THINK" in raw else None)
        assert (message.content, message.reasoning_content) == said, (raw, message)


@each_template
def test_an_answer_is_read_as_it_was_written(name: str) -> None:
    if name in NOT_SO:
        pytest.skip(NOT_SO[name])
    prompt, raw = written(name, Message(role="assistant", content="SAY", reasoning_content="THINK"), thinks=True)
    assert plain(read(name, prompt, raw)) == ("SAY", "THINK" if "THINK" in raw else None, []), raw


@each_template
def test_the_grammar_takes_calls_as_they_were_written(name: str) -> None:
    if name in UNLIKE:
        pytest.skip(UNLIKE[name])
    template = real(name)
    made = (
        ToolCall("a1b2c3d4e5", "get_weather", '{"city": "Paris", "days": 2, "unit": "C"}'),
        ToolCall("b1b2c3d4e5", "now", "{}"),
    )
    calls = made if template.capabilities.parallel_tool_calls or not template.capabilities.tool_calls else made[:1]
    prompt, raw = written(name, Message(role="assistant", reasoning_content="THINK", tool_calls=calls), thinks=True)
    request = TurnRequest(tools=TOOLS, choice="required", prompt=prompt)
    constraint = format_of(template).plan(request).constraint
    assert constraint is not None
    assert accepts(prepare(constraint).compiled, raw.rstrip("\n").encode()), (prompt[-40:], raw)
