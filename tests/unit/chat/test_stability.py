"""The prompt of the next turn begins with the prompt of this one, so that what has been read is of use."""

from __future__ import annotations

from itertools import pairwise

from puna.chat import SpecialTexts, render_chat
from tests.unit.chat.conversations import TOOLS, calling, result, weather
from tests.unit.chat.helpers import assistant, each_template, real, system, user

CONVERSATION = [
    system("Be brief"),
    user("one"),
    assistant("two"),
    user("three"),
    calling(weather("Paris")),
    result("18", "call_weather_1"),
    assistant("warm"),
    user("four"),
    assistant("five"),
    user("six"),
]
PROMPTS = (2, 4, 6, 8, 10)
"""After so many messages it is the assistant's turn."""

OPENS_THOUGHTS = "the prompt opens thoughts, or says that there are none, which history does not show"
LAST_QUESTION = "what is said with the last question moves on with it"
LAST_RESULT = "a result that is the last message ends in another way"

UNSTABLE = {
    "Apertus-8B-Instruct": LAST_RESULT,
    "Apriel-1.6-15b-Thinker-fixed": OPENS_THOUGHTS,
    "Bielik-11B-v3.0-Instruct": LAST_RESULT,
    "Cohere2MoE": OPENS_THOUGHTS,
    "CohereForAI-c4ai-command-r-plus-tool_use": LAST_QUESTION,
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": OPENS_THOUGHTS,
    "GLM-4.7-Flash": OPENS_THOUGHTS,
    "MiniMax-M2": OPENS_THOUGHTS,
    "Mistral-Small-3.2-24B-Instruct-2506": LAST_QUESTION,
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": OPENS_THOUGHTS,
    "NVIDIA-Nemotron-Nano-v2": OPENS_THOUGHTS,
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": LAST_RESULT,
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": LAST_RESULT,
    "Qwen-QwQ-32B": OPENS_THOUGHTS,
    "Qwen3.5-4B": OPENS_THOUGHTS,
    "Spark2.5": OPENS_THOUGHTS,
    "StepFun3.5-Flash": OPENS_THOUGHTS,
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": OPENS_THOUGHTS,
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": OPENS_THOUGHTS,
    "deepseek-ai-DeepSeek-V3.2": OPENS_THOUGHTS,
    "google-gemma-4-31B-it": OPENS_THOUGHTS,
    "google-gemma-4-31B-it-interleaved": OPENS_THOUGHTS,
    "llama-cpp-deepseek-r1": OPENS_THOUGHTS,
    "mistralai-Mistral-Nemo-Instruct-2407": LAST_QUESTION,
}
"""Templates that do not allow it, and why."""


@each_template
def test_prompts_grow_at_their_end(name: str) -> None:
    template, none = real(name), SpecialTexts()
    prompts = [render_chat(template, CONVERSATION[:n], special_tokens=none, tools=TOOLS).text for n in PROMPTS]
    stable = all(after.startswith(before) for before, after in pairwise(prompts))
    assert stable is (name not in UNSTABLE)
