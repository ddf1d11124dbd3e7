"""North Mini Code."""

from __future__ import annotations

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.cohere import command_r7b
from tests.unit.chat.formats.cases.command_r7b import cases
from tests.unit.chat.formats.harness import Family

FAMILY = Family(DescribedFormat(command_r7b("<|START_TEXT|>")), cases("TEXT"), prompt="<|START_THINKING|>")
