"""What a template can take is found out from the template itself."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.chat.helpers import each_template, made, real

LOOP = "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}"
CALLS = (
    "{% for m in messages %}[{{ m.role }}:{{ m.content }}"
    "{% for c in m.tool_calls or [] %}({{ c.function.name }} {{ ARGUMENTS }}){% endfor %}]{% endfor %}"
)


def calls(arguments: str) -> str:
    return CALLS.replace("ARGUMENTS", "c.function.arguments" + arguments)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (LOOP, {"tools": False, "tool_calls": False, "tool_results": True, "reasoning": None, "object_arguments": True}),
        ("{{ tools|tojson }}" + LOOP, {"tools": True, "tool_calls": False}),
        ("{% for t in tools %}{{ t.function.name }}{% endfor %}" + LOOP, {"tools": True, "bare_tools": True}),
        ("{{ tools and tools[0].function.description + tools[0].function.name }}" + LOOP, {"tools": True, "bare_tools": False}),
        (calls("|tojson"), {"tool_calls": True, "object_arguments": True, "string_arguments": True}),
        (calls(""), {"tool_calls": True, "object_arguments": False, "string_arguments": True}),
        (calls("|items|list|tojson"), {"tool_calls": True, "object_arguments": True, "string_arguments": False}),
        ("{{ tools|tojson }}" + calls(""), {"tools": True, "object_arguments": False, "parallel_tool_calls": True}),
        (
            calls("|tojson").replace("m.tool_calls or []", "(m.tool_calls or [])[:1]"),
            {"tool_calls": True, "parallel_tool_calls": False},
        ),
        (
            "{% for m in messages if m.role == 'assistant' and m.content is none %}{{ m.tool_calls|tojson }}{% endfor %}",
            {"tool_calls": True, "empty_content": None, "tool_results": False, "tool_call_ids": True},
        ),
        (
            "{% for m in messages if m.role == 'tool' and m.tool_call_id|length != 9 %}{{ raise_exception('id') }}{% endfor %}"
            + calls("|tojson"),
            {"tool_calls": True, "any_tool_call_id": False, "tool_call_ids": False},
        ),
        ("{% for m in messages %}{{ m.reasoning }}{{ m.content }}{% endfor %}", {"reasoning": "reasoning"}),
        (
            "{% for m in messages %}{% if enable_thinking %}T{{ m.thinking }}{% endif %}{{ m.content }}{% endfor %}",
            {"reasoning": "thinking", "thinking_switch": "enable_thinking", "reasoning_with_text": True},
        ),
        (
            "{% for m in messages %}{{ m.content.split('</think>')[-1] if m.role == 'user' else m.content }}{% endfor %}",
            {"reasoning": "content"},
        ),
        ("{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}", {"reasoning": None}),
        ("{{ 'on' if thinking else 'off' }}" + LOOP, {"thinking_switch": "thinking"}),
        (LOOP, {"thinking_switch": None, "repeated_user": True, "repeated_assistant": True}),
        (
            "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('order') }}"
            "{% endif %}{% endfor %}" + LOOP,
            {"repeated_user": False, "repeated_assistant": False},
        ),
    ],
)  # fmt: skip
def test_property(source: str, expected: dict[str, Any]) -> None:
    capabilities = made(source).capabilities
    assert {name: getattr(capabilities, name) for name in expected} == expected


def test_thinking_is_switched_by_the_families_own_variable() -> None:
    assert made("{{ thinking_budget }}" + LOOP).capabilities.thinking(False) == {"thinking_budget": 0}
    assert made("{{ enable_thinking }}" + LOOP).capabilities.thinking(True) == {"enable_thinking": True}
    assert made(LOOP).capabilities.thinking(True) == {}


NOTHING_OF_TOOLS = {
    "HuggingFaceTB-SmolLM3-3B", "google-gemma-2-2b-it", "llama-cpp-rwkv-world", "microsoft-Phi-3.5-mini-instruct",
}  # fmt: skip
CALLS_ONLY = {
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B", "deepseek-ai-DeepSeek-V3.1",
}  # fmt: skip
TOOLS_ONLY = {"LFM2-8B-A1B", "LFM2.5-Instruct", "ibm-granite-granite-3.3-2B-Instruct"}
ONE_CALL_A_TURN = {
    "GigaChat3-10B-A1.8B", "GigaChat3.1-10B-A1.8B", "meta-llama-Llama-3.1-8B-Instruct", "meta-llama-Llama-3.2-3B-Instruct",
    "meta-llama-Llama-3.3-70B-Instruct", "openai-gpt-oss-120b",
}  # fmt: skip
TEXT_ARGUMENTS = {"deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "meetkai-functionary-medium-v3.2"}


@each_template
def test_tools_of_a_real_template(name: str) -> None:
    found = real(name).capabilities
    assert found.tools is (name not in NOTHING_OF_TOOLS | CALLS_ONLY)
    assert found.tool_calls is (name not in NOTHING_OF_TOOLS | TOOLS_ONLY)
    assert found.parallel_tool_calls is (found.tool_calls and name not in ONE_CALL_A_TURN)
    assert found.object_arguments is (name not in TEXT_ARGUMENTS)
    assert found.tool_results is (name not in NOTHING_OF_TOOLS - {"HuggingFaceTB-SmolLM3-3B"})


@pytest.mark.parametrize(
    ("name", "reasoning", "switch"),
    [
        ("Qwen-Qwen3-0.6B", "reasoning_content", "enable_thinking"),
        ("Qwen-Qwen2.5-7B-Instruct", None, None),
        ("deepseek-ai-DeepSeek-V3.2", "reasoning_content", "enable_thinking"),
        ("openai-gpt-oss-120b", "thinking", None),
        ("llm-jp-llm-jp-4.1-8b-thinking", "thinking", None),
        ("upstage-Solar-Open-100B", "reasoning", None),
        ("mistralai-Ministral-3-14B-Reasoning-2512", "parts", None),
        ("NVIDIA-Nemotron-Nano-v2", "content", None),
        ("Kimi-K3", "reasoning_content", "thinking"),
        ("MiniMax-M3", "reasoning_content", "thinking_mode"),
        ("ByteDance-Seed-OSS", "reasoning_content", "thinking_budget"),
        ("ibm-granite-granite-3.3-2B-Instruct", None, "thinking"),
    ],
)
def test_reasoning_of_a_real_template(name: str, reasoning: str | None, switch: str | None) -> None:
    found = real(name).capabilities
    assert (found.reasoning, found.thinking_switch) == (reasoning, switch)
