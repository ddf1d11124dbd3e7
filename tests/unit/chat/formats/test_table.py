"""Which template speaks which format, and what a plan says beside its grammar."""

from __future__ import annotations

import pytest

from puna.chat.formats.plan import Choice, TurnRequest
from puna.chat.formats.table import NAMES, TABLE, choose_format
from tests.unit.chat.formats.harness import TOOLS
from tests.unit.chat.helpers import FOLDER, each_template

CHOICES: tuple[Choice, ...] = ("none", "auto", "required")

SPOKEN = {
    "Apertus-8B-Instruct": "apertus",
    "Apriel-1.6-15b-Thinker-fixed": "apriel",
    "Bielik-11B-v3.0-Instruct": "hermes",
    "ByteDance-Seed-OSS": "seed-oss",
    "Cohere2MoE": "command-r7b",
    "CohereForAI-c4ai-command-r-plus-tool_use": "command-r",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "command-r7b",
    "GLM-4.6": "glm",
    "GLM-4.7-Flash": "glm",
    "GigaChat3-10B-A1.8B": "gigachat3",
    "GigaChat3.1-10B-A1.8B": "gigachat3.1",
    "HuggingFaceTB-SmolLM3-3B": "generic",
    "Kimi-K2-Instruct": "kimi-k2",
    "Kimi-K2-Thinking": "kimi-k2",
    "Kimi-K3": "kimi-k3",
    "LFM2-8B-A1B": "lfm2",
    "LFM2.5-8B-A1B": "lfm2",
    "LFM2.5-Instruct": "lfm2",
    "MiMo-VL": "hermes",
    "MiniMax-M1": "minimax-m1",
    "MiniMax-M2": "minimax-m2",
    "MiniMax-M3": "minimax-m3",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "qwen-xml",
    "NVIDIA-Nemotron-Nano-v2": "nemotron-v2",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "hermes",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "hermes",
    "Qwen-QwQ-32B": "hermes",
    "Qwen-Qwen2.5-7B-Instruct": "hermes",
    "Qwen-Qwen3-0.6B": "hermes",
    "Qwen3-Coder": "qwen-xml",
    "Qwen3.5-4B": "qwen-xml",
    "Reka-Edge": "reka",
    "Spark2.5": "glm",
    "StepFun3.5-Flash": "qwen-xml",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "deepseek-r1",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "deepseek-r1",
    "deepseek-ai-DeepSeek-V3.1": "deepseek-v3.1",
    "deepseek-ai-DeepSeek-V3.2": "deepseek-v3.2",
    "deepseek-ai-DeepSeek-V4": "deepseek-v4",
    "deepseek-ai-DeepSeek-V4-Flash-0731": "deepseek-v4",
    "fireworks-ai-llama-3-firefunction-v2": "firefunction",
    "google-gemma-2-2b-it": "generic",
    "google-gemma-4-31B-it": "gemma4",
    "google-gemma-4-31B-it-interleaved": "gemma4",
    "ibm-granite-granite-3.3-2B-Instruct": "granite3",
    "ibm-granite-granite-4.0": "hermes",
    "ibm-granite-granite-4.1": "hermes",
    "inclusionai-ling-3.0-flash": "glm",
    "llama-cpp-deepseek-r1": "deepseek-r1",
    "llama-cpp-rwkv-world": "generic",
    "llm-jp-llm-jp-4.1-8b-thinking": "gpt-oss",
    "meetkai-functionary-medium-v3.1": "functionary-v3.1",
    "meetkai-functionary-medium-v3.2": "functionary-v3.2",
    "meta-llama-Llama-3.1-8B-Instruct": "llama3",
    "meta-llama-Llama-3.2-3B-Instruct": "llama3",
    "meta-llama-Llama-3.3-70B-Instruct": "llama3",
    "microsoft-Phi-3.5-mini-instruct": "generic",
    "mistralai-Ministral-3-14B-Reasoning-2512": "mistral",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral-nemo",
    "moonshotai-Kimi-K2": "kimi-k2",
    "muse-glimmer": "muse",
    "openai-gpt-oss-120b": "gpt-oss",
    "openbmb-MiniCPM5-1B": "minicpm5",
    "poolside-Laguna-S-2.1": "glm",
    "poolside-Laguna-XS-2.1": "glm",
    "poolside-Laguna-XS.2": "glm",
    "tencent-Hy3": "hunyuan",
    "unsloth-Apriel-1.5": "apriel",
    "unsloth-mistral-Devstral-Small-2507": "mistral",
    "upstage-Solar-Open-100B": "solar-open",
}


def source_of(name: str) -> str:
    """A real template's text; the test is skipped where there is none."""
    path = FOLDER / f"{name}.jinja"
    if not path.is_file():
        pytest.skip(f"no template at {path}")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SPOKEN)
def test_a_real_template_is_known(name: str) -> None:
    assert choose_format(source_of(name)).name == SPOKEN[name]


@each_template
def test_every_template_has_a_format_that_can_plan(name: str) -> None:
    form = choose_format(source_of(name))
    for choice in CHOICES:
        turn = form.plan(TurnRequest(tools=TOOLS, choice=choice))
        assert turn.format == form.name
        assert (turn.constraint is not None and bool(turn.constraint.triggers)) == (choice == "auto")
    assert form.plan(TurnRequest()).constraint is None


def test_every_name_can_be_asked_for() -> None:
    assert len(set(NAMES)) == len(NAMES) == len(TABLE) + 1
    for name in NAMES:
        assert choose_format("", name).name.startswith(name)


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(KeyError, match="klingon"):
        choose_format("", "klingon")


def test_tags_in_comments_are_none() -> None:
    assert choose_format("{# <think></think> #}{{ messages }}").plan(TurnRequest()).thinking is None
