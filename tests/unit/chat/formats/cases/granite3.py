"""Granite 3.3."""

from __future__ import annotations

from collections.abc import Sequence

from puna.chat.formats.described import DescribedFormat
from puna.chat.formats.families.granite import GRANITE3
from tests.unit.chat.formats.cases.standard import CITY, Call, standard
from tests.unit.chat.formats.harness import Case, Family


def spell(calls: Sequence[Call]) -> str:
    items = ", ".join(f'{{"name": "{name}", "arguments": {arguments}}}' for name, arguments in calls)
    return f"<|tool_call|>[{items}]"


PARIS = spell([CITY])

FAMILY = Family(
    DescribedFormat(GRANITE3),
    (
        *standard(spell, "<|tool_call|>"),
        Case("text-after", f"{PARIS}\nDone.", content="Done.", calls=[CITY], well_formed=False),
        Case("thoughts", f"<think>Hm.</think>{PARIS}", reasoning="Hm.", calls=[CITY]),
        Case("wrapped", "<think>Hm.</think><response>Yes.</response>", reasoning="Hm.", content="Yes."),
        Case("wrapped-alone", "<response>Yes, <response>.</response>", content="Yes, <response>."),
        Case("not-wrapped", "Write <response>Yes.</response>", content="Write <response>Yes.</response>"),
        Case("blank", PARIS.replace(">[", "> ["), calls=[CITY], well_formed=False),
        Case("no-list", '<|tool_call|>{"name": "now", "arguments": {}}', calls=[("now", "{}")], well_formed=False),
    ),
)
