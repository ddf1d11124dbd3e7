"""DeepSeek V4."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.deepseek import V4
from tests.unit.chat.formats.cases.deepseek_v3_2 import TOKEN, cases
from tests.unit.chat.formats.harness import Family

FAMILY = Family(DescribedFormat(V4), cases("tool_calls"), control=(TOKEN, "<think>", "</think>"))
