"""One file a family: raw outputs and the messages that they are.

Each module has `FAMILY`, a `Family` of `tests.unit.chat.formats.harness` with at least 12 cases. `MODULES` lists them.
"""

from __future__ import annotations

from tests.unit.chat.formats.cases import (
    deepseek_r1,
    deepseek_v3_1,
    deepseek_v3_2,
    deepseek_v4,
    generic,
    gpt_oss,
    hermes,
    llama3,
    mistral,
    mistral_ids,
    mistral_nemo,
    qwen_xml,
)

MODULES = (
    deepseek_r1,
    deepseek_v3_1,
    deepseek_v3_2,
    deepseek_v4,
    generic,
    gpt_oss,
    hermes,
    llama3,
    mistral,
    mistral_ids,
    mistral_nemo,
    qwen_xml,
)
