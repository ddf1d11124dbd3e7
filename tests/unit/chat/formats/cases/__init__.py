"""One file a family: raw outputs and the messages that they are.

Each module has `FAMILY`, a `Family` of `tests.unit.chat.formats.harness` with at least 12 cases. `MODULES` lists them.
"""

from __future__ import annotations

from tests.unit.chat.formats.cases import (
    cohere2_moe,
    command_r,
    command_r7b,
    deepseek_r1,
    deepseek_v3_1,
    deepseek_v3_2,
    deepseek_v4,
    generic,
    glm,
    glm_4_7,
    gpt_oss,
    hermes,
    hunyuan,
    kimi_k2,
    kimi_k3,
    llama3,
    minimax_m1,
    minimax_m2,
    mistral,
    mistral_ids,
    mistral_nemo,
    nemotron_v2,
    qwen_xml,
    seed_oss,
    solar_open,
)

MODULES = (
    cohere2_moe,
    command_r,
    command_r7b,
    deepseek_r1,
    deepseek_v3_1,
    deepseek_v3_2,
    deepseek_v4,
    generic,
    glm,
    glm_4_7,
    gpt_oss,
    hermes,
    hunyuan,
    kimi_k2,
    kimi_k3,
    llama3,
    minimax_m1,
    minimax_m2,
    mistral,
    mistral_ids,
    mistral_nemo,
    nemotron_v2,
    qwen_xml,
    seed_oss,
    solar_open,
)
